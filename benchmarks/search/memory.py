"""What a device holds at its peak, in GiB, on the worse of the first and the last stage."""

from search.cluster import GIB, Config, Constants, Device, Model
from search.times import attention_mode


def owned(m: Model, c: Config, last: bool) -> tuple[float, float]:
    """Dense and expert weights of one device's stage, before sharding by ZeRO."""
    ends = m.vocab * m.d * (1 if c["pp"] > 1 else (1 if m.tied else 2))
    if m.tied and c["pp"] > 1 and last:
        ends = m.vocab * m.d
    mlp = 0 if m.experts else m.ffn_params
    dense = (m.layers / c["pp"] * (m.attention_params + mlp) + ends) / c["tp"]
    return dense, m.expert_params / (c["pp"] * c["tp"] * c["ep"])


def state(c: Config, params: float, ranks: float) -> float:
    """Bytes of weights, gradients and optimizer state of `params` owned weights."""
    weights, grads, moments = (2.0, 4.0, 12.0)
    if c["precision"] == "fp32":
        weights, grads, moments = 4.0, 4.0, 8.0
    if c["precision"] == "fp8":
        weights += 1.06
    if c["bf16_reduce"] and c["precision"] != "fp32":
        grads = 2.0
    if c["offload"] == "optimizer" or c["offload_state"]:
        moments = 0.35
    zero = int(c["zero"])
    moments /= ranks if zero >= 1 else 1
    grads /= ranks if zero >= 2 else 1
    weights /= ranks if zero >= 3 else 1
    held = 0.15 if not c["zero_grad_none"] and zero < 2 else 0.0
    return params * (weights + grads * (1 + 0.3 * held) + moments)


def per_token_layer(m: Model, k: Constants, c: Config) -> float:
    """Bytes a token and layer keeps for the backward."""
    width = 2.0 if c["precision"] == "fp32" else 1.0
    share = 1 / c["tp"] if c["seq_par"] else 0.3 + 0.7 / c["tp"]
    if c["ckpt"] == "full":
        return 2.1 * m.d * width * (1 / c["tp"] if c["seq_par"] else 1.0)
    heads = 2 * m.head_dim * (m.heads + 2 * m.kv) + 2 * m.head_dim * m.heads
    norms = 13.0 * m.d * (0.72 if c["fused_norm"] else 1.0)
    norms -= 2.0 * m.d if c["inplace_residual"] else 0.0
    inner = mlp_bytes(m, k, c)
    scores = 0.0
    if attention_mode(c) == "math" and c["ckpt"] != "selective":
        scores = 5.0 * m.heads * m.seq
    if c["ckpt"] == "selective":
        heads *= 0.55
        norms *= 0.9
    compiled = 0.82 if c["compile"] != "off" and c["ckpt"] == "none" else 1.0
    eight = 0.86 if c["precision"] == "fp8" else 1.0
    return k.activation * width * compiled * eight * share * (heads + norms + inner + scores)


def mlp_bytes(m: Model, k: Constants, c: Config) -> float:
    """The MLP's part of `per_token_layer`: gate, up, activation, product."""
    kept = 8.0 * m.ffn * (0.62 if c["fused_mlp"] else 1.0)
    if c["recompute_mlp"]:
        kept *= 0.42
    if c["ckpt"] == "selective":
        kept *= 0.92
    if not m.experts:
        return kept
    each = c.tokens * m.top_k * c["ep"] / m.experts
    excess = 1 + k.imbalance * 1.4 * (c["ep"] / 8) ** 0.4 * (1 + 30 / (each + 40))
    return (kept + 4.0 * m.d * (0.8 if c["fused_permute"] else 1.6)) * m.top_k * excess


def in_flight(c: Config, last: bool) -> float:
    """Micro-batches whose activations a stage keeps under one-forward-one-backward."""
    if c["pp"] == 1:
        return 1.0
    depth = 1 if last else min(int(c["pp"]), c.accum)
    extra = (c["pp"] - 1) / (c["pp"] * c["vpp"]) if c["vpp"] > 1 else 0.0
    return depth * (1 + extra)


def logit_bytes(m: Model, c: Config) -> float:
    """Bytes of logits, their fp32 copy and gradient on the stage that has the loss."""
    each = c.tokens * m.vocab / c["tp"]
    if c["chunked_ce"]:
        return each * 0.7 + 30e6
    if c["fused_ce"]:
        return each * 4.2
    return each * (11.0 if c["compile"] == "off" else 8.5)


def workspace(m: Model, d: Device, k: Constants, c: Config) -> float:
    """Bytes of buckets, communicators, gathered layers, attention and compiler scratch."""
    dense, expert = owned(m, c, False)
    total = 0.0
    if c.dp > 1:
        total += 2e6 * c["bucket"] * (2 if c["overlap_reduce"] else 1)
        total += 0.03 * GIB * (1 + (c["channels"] or 8) / 8)
    if c["tp"] > 1:
        total += 0.12 * GIB + c.tokens * m.d * 4
    if int(c["zero"]) >= 3:
        total += (2.6 if c["overlap_gather"] else 1.6) * 2 * dense / (m.layers / c["pp"])
        total += 2 * 2 * expert / (m.layers / c["pp"])
    elif c["overlap_gather"]:
        total += 0.06 * 2 * (dense + expert)
    if c["compile"] == "autotune":
        total += 0.5 * GIB
    if c["cuda_graph"]:
        total += 0.9 * GIB + 0.04 * c.tokens * m.d * 30
    if c["dispatcher"] == "allgather" and m.experts:
        total += c.tokens * m.d * 2 * min(c["ep"], 8)
    return total


def stage_peak(m: Model, d: Device, k: Constants, c: Config, last: bool) -> float:
    """GiB at the peak of the first or the last stage."""
    dense, expert = owned(m, c, last)
    held = state(c, dense, c.dp * c["cp"]) + state(c, expert, c.dp * c["cp"] / c["ep"])
    layers = m.layers / c["pp"] + (k.late_stage if last else 0.0)
    kept = c.tokens * layers * per_token_layer(m, k, c) * in_flight(c, last)
    if c["ckpt"] == "full":
        plain = Config({**c.c, "ckpt": "none"}, c.gpus, m)
        kept += 1.15 * c.tokens * per_token_layer(m, k, plain)
    ends = logit_bytes(m, c) if last else 0.0
    loose = k.fragmentation * (0.25 if c["alloc"] == "expandable" else 1.0)
    loose *= 0.35 if c["empty_cache"] else 1.0
    loose += 0.03 if c["alloc"] == "expandable" and c["cuda_graph"] else 0.0
    moving = (kept + ends) * (1 + loose) + workspace(m, d, k, c)
    return k.context_gib + (held * (1 + 0.15 * loose) + moving) / GIB


def peak_gib(m: Model, d: Device, k: Constants, c: Config) -> float:
    """GiB at the worse stage."""
    if c["pp"] == 1:
        return stage_peak(m, d, k, c, True)
    return max(stage_peak(m, d, k, c, False), stage_peak(m, d, k, c, True))
