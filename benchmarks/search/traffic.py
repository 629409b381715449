"""What the links cost: tensor, context, expert, pipeline and data parallelism.

Each gives exposed seconds; what hides behind compute is subtracted here.
"""

from search.cluster import Config, Constants, Device, Model

CHANNEL_RATE = {0: 0.94, 2: 0.55, 4: 0.8, 8: 0.95, 16: 1.0, 32: 0.97}


def link(d: Device, c: Config, span: int) -> float:
    """Bytes/s of a ring over `span` neighbouring devices."""
    inside = span <= d.gpus_per_node
    rate = (d.nvlink if inside else d.ib) * CHANNEL_RATE[int(c["channels"])]
    if c["algo"] == "tree":
        rate *= 0.86 if inside else 1.05
    return rate


def ring(d: Device, k: Constants, c: Config, size: float, ranks: int, span: int) -> float:
    """Seconds of one gather or scatter of `size` bytes over `ranks` of every `span`."""
    if ranks <= 1:
        return 0.0
    hops = ranks - 1 if c["algo"] != "tree" else 4
    latency = k.latency_s * (1 if span <= d.gpus_per_node else 2.2) * (1 + 0.12 * hops)
    return size * (ranks - 1) / ranks / link(d, c, span) + latency


def tensor(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Exposed seconds a layer and micro-batch: four all-reduces, six with recomputation."""
    tp = int(c["tp"])
    if tp == 1:
        return 0.0
    times = 4 + (2 if c["ckpt"] == "full" else 0)
    each = 2 * ring(d, k, c, c.tokens * m.d * 2, tp, tp)
    hidden = 0.0
    if c["async_tp"] and c["seq_par"]:
        hidden = 0.55 if c["compile"] != "off" else -0.06
    if c["comm_overlap"] and c["seq_par"] and tp <= d.gpus_per_node:
        hidden = max(hidden, 0.0) + (0.3 if hidden <= 0 else 0.04)
    if m.experts:
        times -= 1
    return times * each * (1 - hidden)


def context(m: Model, d: Device, k: Constants, c: Config, attention: float) -> float:
    """Exposed seconds a layer: keys and values go round, partly behind attention."""
    cp = int(c["cp"])
    if cp == 1:
        return 0.0
    size = c.tokens * m.kv * m.head_dim * 2 * 2 / min(int(c["tp"]), m.kv)
    whole = 3 * ring(d, k, c, size * cp, cp, cp * int(c["tp"]))
    return max(0.25 * whole, whole - 2.2 * attention)


def dispatch(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Exposed seconds a layer of sending tokens to experts and back."""
    ep = int(c["ep"])
    if not m.experts or ep == 1:
        return 0.0
    span = ep * int(c["tp"]) * int(c["cp"])
    copies = m.top_k if c["dispatcher"] != "allgather" else min(ep, 1.35 * m.top_k) * 1.0
    size = c.tokens * m.d * 2 * copies / (c["tp"] if c["seq_par"] else 1)
    crossing = 1.0 if c["dispatcher"] != "flex" else (0.62 if span > d.gpus_per_node else 0.9)
    each = ring(d, k, c, size * crossing, ep, span) + 0.7 * k.latency_s * ep**0.5
    times = 4 + (2 if c["ckpt"] == "full" else 0)
    hidden = 0.5 if c["overlap_dispatch"] and c.accum > 1 else 0.0
    return times * each * (1 - hidden)


def pipeline(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Exposed seconds a micro-batch of handing activations on."""
    if c["pp"] == 1:
        return 0.0
    span = int(c["tp"]) * int(c["cp"]) * int(c["pp"])
    size = c.tokens * m.d * 2 / (c["tp"] if c["seq_par"] else 1)
    rate = d.nvlink if span <= d.gpus_per_node else d.ib
    return 2 * c["vpp"] * (size / rate * 0.5 + 2 * k.latency_s)


def gradients(d: Device, k: Constants, c: Config, params: float, ranks: int, back: float) -> float:
    """Exposed seconds a step of reducing `params` gradients over `ranks` and gathering weights."""
    if ranks <= 1:
        return 0.0
    span = d.gpus_per_node + 1 if ranks * c["tp"] * c["cp"] > d.gpus_per_node else ranks
    width = 2.0 if c["bf16_reduce"] else k.reduce_bytes
    if c["precision"] == "fp32":
        width = 4.0
    once = ring(d, k, c, params * width, ranks, span)
    gather = ring(d, k, c, params * (4.0 if c["precision"] == "fp32" else 2.0), ranks, span)
    buckets = params * width / (c["bucket"] * 1e6)
    once += buckets * k.latency_s * (1.6 if ranks > 8 else 1.0)
    times, gathers = reductions(c)
    tail = min(once, c["bucket"] * 1e6 / link(d, c, span))
    hide = k.overlap * back if c["overlap_reduce"] else 0.0
    exposed = times * max(tail, once - hide)
    hide = 0.45 * back if c["overlap_gather"] else 0.0
    return exposed + gathers * max(0.06 * gather, gather - hide)


def reductions(c: Config) -> tuple[float, float]:
    """How often a step reduces gradients (in one-way rings) and gathers weights."""
    micro = float(c.accum)
    match int(c["zero"]):
        case 0:
            return 2.0 * (1.0 if c["no_sync"] else micro), 0.0
        case 1:
            return 1.0 if c["no_sync"] else micro, 1.0
        case 2:
            return micro, 1.0
        case _:
            return micro, 2 * micro + (micro if c["ckpt"] == "full" else 0.0)
