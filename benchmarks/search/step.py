"""One step of a simulated job without noise: seconds, peak GiB, and how it ends."""

import math
from dataclasses import dataclass

from search import times, traffic
from search.cluster import Config, Constants, Device, Model
from search.memory import owned, peak_gib


@dataclass(frozen=True, kw_only=True)
class Step:
    """Noiseless seconds and GiB of a configuration, whether or not it would survive."""

    seconds: float
    peak_gib: float


def run_step(m: Model, d: Device, k: Constants, c: Config) -> Step:
    """The whole step: micro-batches through the stages, gradients, update, host."""
    log_time, log_memory = hidden(k, c)
    peak = peak_gib(m, d, k, c) * math.exp(log_memory)
    stage, back = micro_batch(m, d, k, c)
    last = stage + times.logits(m, d, k, c)
    last += k.late_stage * stage / (m.layers / c["pp"])
    slow = max(stage, last)
    total = slow * c.accum + (c["pp"] - 1) / c["vpp"] * (0.5 * slow + 0.5 * stage)
    dense, expert = owned(m, c, False)
    ranks = c.dp * c["cp"]
    total += traffic.gradients(d, k, c, dense, ranks, back)
    total += traffic.gradients(d, k, c, expert, max(1, ranks // c["ep"]), back / 2)
    share = ranks if c["zero"] >= 1 else 1
    update = dense / share + expert / max(1, share / c["ep"] if share > 1 else 1)
    total += times.optimizer(update, d, k, c)
    total = total * pressure(peak, d, c) * math.exp(log_time)
    total += times.host_step(k, c, total)
    if c["empty_cache"]:
        total = total * 1.035 + 0.03
    return Step(seconds=total, peak_gib=peak)


def micro_batch(m: Model, d: Device, k: Constants, c: Config) -> tuple[float, float]:
    """Seconds of a stage's micro-batch, and of the part of its backward that can hide traffic."""
    device, host = times.layer(m, d, k, c)
    steal = 0.012 if c["channels"] >= 16 and c.dp > 1 and c["overlap_reduce"] else 0.0
    device *= 1 + steal
    device += traffic.tensor(m, d, k, c) + traffic.dispatch(m, d, k, c)
    device += traffic.context(m, d, k, c, times.attention_forward(m, d, k, c))
    layers = m.layers / c["pp"]
    wait = 0.0 if c["drop_syncs"] else k.sync_s
    stage = layers * (device**4 + host**4) ** 0.25 + traffic.pipeline(m, d, k, c) + wait
    return stage, 0.62 * layers * device


def pressure(peak: float, d: Device, c: Config) -> float:
    """Slower steps where the allocator must free and ask again."""
    full = peak / d.capacity_gib
    knee = 0.965 if c["alloc"] == "expandable" else 0.93
    return 1 + 0.9 * max(0.0, min(full, 1.0) - knee)


def hidden(k: Constants, c: Config) -> tuple[float, float]:
    """Log time and log memory of what no textbook tells about this job."""
    seconds = sum(effect for name, value, effect in k.singles if c.c[name] == value)
    memory = 0.0
    for a, x, b, y, slower, larger in k.pairs:
        if c.c[a] == x and c.c[b] == y:
            seconds, memory = seconds + slower, memory + larger
    return seconds, memory
