"""How long one micro-batch takes on one stage, and what the rest of a step adds.

A roofline with details of its own: products that saturate in tokens and width, elementwise
passes over memory, attention by implementation, launches by the host, experts by tokens each.
"""

from search.cluster import Config, Constants, Device, Model

ATTENTION_RATE = {"math": 0.0, "sdpa": 0.34, "flash": 0.47, "flash3": 0.66}
OPTIMIZER_PASSES = {"loop": 1.7, "foreach": 1.25, "fused": 1.0}


def saturation(x: float, half: float) -> float:
    """0 to 1, a half at `half`."""
    return x / (x + half)


def matmul_rate(device: Device, k: Constants, c: Config, tokens: float, width: float) -> float:
    """FLOP/s reached by products of `tokens` rows and `width` columns."""
    reach = k.top * saturation(tokens, k.half_tokens) * saturation(width, k.half_width)
    match c["precision"]:
        case "fp8":
            return device.peak_fp8 * 0.74 * reach * saturation(width, 350.0)
        case "fp32":
            return device.peak_bf16 / (2.3 if c["tf32"] else 15.0) * reach
        case _:
            return device.peak_bf16 * reach


def attention_mode(c: Config) -> str:
    """The implementation that really runs: code with manual attention needs its patch first."""
    if c.c.get("manual_attention") and not c["sdpa"]:
        return "math"
    return str(c["attn"])


def attention_forward(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Seconds of one layer's attention forward."""
    mode = attention_mode(c)
    pairs = c["mbs"] * m.heads / c["tp"] * m.seq * m.seq / c["cp"]
    width = 4.0 if c["precision"] == "fp32" else 2.0
    if mode == "math" or (c["precision"] == "fp32" and mode != "sdpa"):
        seconds = pairs * width * 6.5 / d.hbm
    else:
        seconds = 2 * pairs * m.head_dim / (d.peak_bf16 * ATTENTION_RATE[mode])
    return seconds * (1.05 if c["custom_attention"] else 1.0)


def elementwise(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Seconds of one layer's norms, activations and residuals, forward and backward."""
    passes = k.passes
    compiled = c["compile"] != "off"
    if c["fused_norm"]:
        passes -= k.passes * (0.02 if compiled else 0.16)
    if c["fused_rope"]:
        passes -= k.passes * (-0.01 if compiled else 0.06)
    if c["fused_mlp"]:
        passes -= k.passes * (0.03 if compiled else 0.13)
    if c["inplace_residual"]:
        passes -= k.passes * 0.03
    if compiled:
        passes *= 0.5 if c["compile"] == "default" else 0.46
    if c["precision"] == "fp8":
        passes += k.passes * (0.08 if c["delayed_scaling"] else 0.2)
    share = 1 / c["tp"] if c["seq_par"] else 0.45 + 0.55 / c["tp"]
    width = 4.0 if c["precision"] == "fp32" else 2.0
    return c.tokens * m.d * width * passes * share / d.hbm


def experts(m: Model, d: Device, k: Constants, c: Config) -> tuple[float, float, float]:
    """Seconds of one layer's experts forward, host seconds, and the busiest device's excess."""
    each = c.tokens * m.top_k * c["ep"] / m.experts
    local = m.experts / c["ep"]
    excess = 1 + k.imbalance * (c["ep"] / 8) ** 0.35 * (1 + 20 / (each + 40))
    rows = each if not c["grouped_experts"] else each * min(local, 4)
    rate = matmul_rate(d, k, c, rows, m.ffn / c["tp"])
    flops = 2 * c.tokens * m.top_k * m.ffn_params / c["tp"]
    permute = c.tokens * m.top_k * m.d * 2 * (3 if c["fused_permute"] else 9) / d.hbm
    launches = 9.0 if c["grouped_experts"] else 6.0 * local
    host = 3 * launches * k.launch_s + (0.0 if c["fewer_routing_syncs"] else 190e-6)
    return flops / rate * excess + permute, host, excess


def layer(m: Model, d: Device, k: Constants, c: Config) -> tuple[float, float]:
    """Device and host seconds of one layer, forward and backward with recomputation."""
    compiled = c["compile"] != "off"
    width = (m.heads * m.head_dim if m.experts else m.ffn) / c["tp"]
    weights = m.attention_params + (0 if m.experts else m.ffn_params)
    rate = matmul_rate(d, k, c, c.tokens, width)
    forward = 2 * c.tokens * weights / c["tp"] / rate * (0.99 if c["fuse_qkv"] else 1.0)
    host = k.kernels * k.launch_s * (0.38 if compiled else 1.0)
    if m.experts:
        seconds, more, _ = experts(m, d, k, c)
        forward, host = forward + seconds, host + more
    attention = attention_forward(m, d, k, c)
    passes = elementwise(m, d, k, c)
    device = 3 * forward + 3.4 * attention + passes
    match c["ckpt"]:
        case "full":
            device += forward + attention + 0.36 * passes
            host *= 1.34
        case "selective":
            device += attention + 0.05 * passes
            host *= 1.06
        case _:
            pass
    if c["recompute_mlp"] and c["ckpt"] != "full":
        device += 0.09 * forward + 0.06 * passes
    return device, host * (0.12 if c["cuda_graph"] else 1.0)


def logits(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Seconds of the output embedding and its loss, forward and backward, on the last stage."""
    rate = matmul_rate(d, k, c, c.tokens, m.vocab / c["tp"])
    if m.vocab % 64 and not c["pad_vocab"]:
        rate *= 0.72
    product = 6 * c.tokens * m.vocab * m.d / c["tp"] / rate
    passes = 3.0 if c["fused_ce"] else (9.0 if c["compile"] == "off" else 6.0)
    if c["chunked_ce"]:
        product, passes = product * 1.36, 3.0
    return product + c.tokens * m.vocab / c["tp"] * 4 * passes / d.hbm


def optimizer(params: float, d: Device, k: Constants, c: Config) -> float:
    """Seconds of the update, clipping and offloaded state, for `params` owned weights."""
    bytes_each = 30 if c["precision"] != "fp32" else 28
    seconds = params * bytes_each * OPTIMIZER_PASSES[str(c["optimizer"])] / d.hbm
    tensors = 9 * c.model.layers / c["pp"]
    if c["optimizer"] == "loop":
        seconds += tensors * 14 * k.launch_s
    seconds += 0.001 if c["fused_clip"] else tensors * 2.5 * k.launch_s + 0.002
    if c["offload"] == "optimizer" or c["offload_state"]:
        seconds += params * 14 / d.pcie * (0.75 if c["pin"] else 1.5)
    return seconds


def host_step(k: Constants, c: Config, busy: float) -> float:
    """Seconds a step waits for data, garbage collection and the like; `busy` is the rest."""
    samples = c.model.global_batch / c.dp
    if c["workers"] == 0:
        data = samples * k.sample_s
    else:
        data = max(0.0, samples * k.sample_s / c["workers"] - (busy if c["prefetch"] else busy / 2))
    crowd = 0.01 * busy if c["workers"] >= 8 else 0.0
    other = 0.0 if c["manual_gc"] else 0.006 * busy
    return data + crowd + other + (0.0 if c["pin"] else 0.004 * busy)
