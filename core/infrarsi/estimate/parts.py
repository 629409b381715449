"""What is summed to an estimate: terms of physics, each with the features that correct it.

A part's share is its size times exp(sum of coefficient x feature). The same features serve the
fit (`benchmarks/fit_estimate.py`) and the estimate, so what is fitted is what is shipped.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.estimate.flop_counts import flop_counts, peak_of
from infrarsi.estimate.job import Job
from infrarsi.estimate.memory_terms import stage_terms
from infrarsi.estimate.physics import Physics

GIB = float(1 << 30)
LAYER_S, STEP_S, COLLECTIVE_S = 2e-3, 5e-2, 3e-5
"""Nominal host time of a layer and micro-batch, of a step, and of one collective, s."""
_MIXTURE_SLOWER = 1.6
"""Nominal cost of routing and of products in groups: mixtures reach that much less of the peak."""
_GENERATION_SLOWER = {"volta": 1.3}
"""Nominal: the clock that Volta's peak is stated at is not held under tensor cores."""

_SQUARES_SLOWER = 2.0
"""Nominal cost of attention that writes its square matrices to memory."""

Features = dict[str, float]


@dataclass(frozen=True, slots=True)
class Part:
    """A term: seconds or bytes by physics, and its features by name."""

    term: str
    size: float
    features: Features


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything one estimate is made of; `shared` features correct the sum."""

    parts: tuple[Part, ...]
    shared: Features


def time_parts(job: Job, costs: Physics) -> Parts:
    """Seconds of one optimizer step by cause; what the pipeline idles is spread over its causes."""
    model = job.model
    inside = 1 / (1 - costs.bubble_frac)
    counts = flop_counts(job)
    fast, slow = peak_of(job.machine, job.modes.precision)
    rest = counts.device - counts.device_linear - counts.device_head
    sized = _sizes(job)
    kind = {f"precision={job.modes.precision}": 1.0, f"generation={job.machine.generation}": 1.0}
    squares = 1.0 if job.modes.fused_attention else _SQUARES_SLOWER
    slowed = _MIXTURE_SLOWER if model.experts else 1.0
    slowed *= _GENERATION_SLOWER.get(job.machine.generation, 1.0)
    parts = [
        Part("linear", slowed * inside * counts.device_linear / fast, sized | kind),
        Part("head", inside * counts.device_head / slow, {}),
        Part("attention", squares * inside * rest / slow, _attention_features(job)),
        Part("traffic", inside * costs.traffic_s, {"moe": float(model.experts > 0)}),
        Part("host", inside * _host_s(job, costs), _host_features(job)),
        Part("step", STEP_S, {}),
    ]
    family = {f"family={job.modes.family}": 1.0}
    for kind_of, volume in costs.communication.items():
        spread = 1.0 if kind_of == "dp" else inside
        far = {"far_ranks": _far_ranks(job, kind_of)} if volume.link == "network" else {}
        parts.append(Part(f"{kind_of}_{volume.link}", spread * volume.seconds, family | far))
        calls = _calls(job, kind_of) * COLLECTIVE_S * spread
        features = family | far | _call_features(job, kind_of)
        parts.append(Part(f"{kind_of}_calls_{volume.link}", calls, features))
    return Parts(tuple(p for p in parts if p.size > 0), _shared_time(job))


def _host_s(job: Job, costs: Physics) -> float:
    """Host time that the device waits for: all of it where kernels are short, little where long."""
    host = LAYER_S * _layer_visits(job)
    return host * host / (host + costs.compute_s)


def _sizes(job: Job) -> Features:
    model, layout = job.model, job.layout
    rows = job.micro_tokens * model.width / layout.tp / 4096**2
    found = {
        "small_products": max(0.0, -math.log(rows)),
        "narrow": max(0.0, math.log(4096 / model.width)),
    }
    if model.experts:
        each = job.micro_tokens * model.top_k * layout.ep / model.experts * model.ffn_expert
        found["moe"] = 1.0
        found["small_experts"] = max(0.0, -math.log(each / 4096**2))
    if job.modes.weight_bytes < 1.5:
        found["quantised"] = 1.0
    return found


def _attention_features(job: Job) -> Features:
    return {
        "unfused": float(not job.modes.fused_attention),
        "small_heads": float(job.model.head_dim < 100),
    }


def _calls(job: Job, kind_of: str) -> float:
    """Messages or collectives of a step."""
    layout = job.layout
    if kind_of == "pp":
        return 4.0 * layout.vpp * layout.accumulation
    if kind_of == "dp":
        visits = _layer_visits(job) if layout.zero == 3 else job.model.layers / layout.pp
        return 3.0 * visits
    return (8.0 if kind_of == "tp" else 4.0) * _layer_visits(job)


def _call_features(job: Job, kind_of: str) -> Features:
    """Ranks that wait for each other, and in some frameworks a pipeline's engine between them."""
    found = {"ranks": _far_ranks(job, kind_of) / 3}
    return found | ({f"piped={job.modes.family}": 1.0} if job.layout.pp > 1 else {})


def _far_ranks(job: Job, kind_of: str) -> float:
    layout = job.layout
    ranks = {"tp": layout.tp, "cp": layout.cp, "ep": layout.ep, "pp": layout.pp}
    return math.log2(ranks.get(kind_of, layout.dp))


def _layer_visits(job: Job) -> float:
    return job.model.layers / job.layout.pp * job.layout.accumulation


def _host_features(job: Job) -> Features:
    found = {f"family={job.modes.family}": 1.0, "moe": float(job.model.experts > 0)}
    found["split"] = float(job.layout.tp > 1)
    return found | {"recompute": float(job.modes.checkpoint in {"full", "remat", "offload"})}


def _shared_time(job: Job) -> Features:
    modes = job.modes
    found = {
        f"family={modes.family}": 1.0,
        "many_devices": math.log2(job.layout.gpus) / 10,
        "compiled": float(modes.compiled),
        "adapter": float(modes.adapter),
        "offload": float(modes.offload_activations),
        f"guessed={modes.checkpoint}": float("act_ckpt_class" in job.assumed),
    }
    return {name: value for name, value in found.items() if value}


def memory_parts(job: Job, first: bool) -> Parts:
    """Bytes of one stage by term; `context` only where the device's use is asked for."""
    modes = job.modes
    terms = stage_terms(job, first)
    family = {f"family={modes.family}": 1.0}
    kept = {f"checkpoint={modes.checkpoint}": 1.0} | family
    kept["moe"] = float(job.model.experts > 0)
    kept["adapter"] = float(modes.adapter)
    features: dict[str, Features] = {
        "parameters": {"zero3": float(job.layout.zero == 3)},
        "gradients": {"adapter": float(modes.adapter)} | family,
        "optimizer_state": {"adapter": float(modes.adapter)} | family,
        "activations": kept,
        "working_layer": family,
        "logits": family | {"adapter": float(modes.adapter)},
        "communication_buffers": {},
    }
    parts = [Part(term, size, features[term]) for term, size in terms.items() if size > 0]
    parts.append(Part("allocator", 0.2 * GIB, family))
    if modes.basis in _HELD_BASES or modes.basis in _DEVICE_BASES:
        parts.append(Part("fragmentation", _HELD_BACK * sum(terms.values()), {}))
    if modes.basis in _DEVICE_BASES:
        parts.append(Part("context", (2.5 if job.layout.gpus > 1 else 1.0) * GIB, {}))
    return Parts(tuple(parts), dict(_shared_memory(job)))


_DEVICE_BASES = ("device_used", "unstated")
"""Bases that hold the device's context; where a source does not say, its tool mostly did."""
_HELD_BASES = ("allocator_reserved_peak",)
_HELD_BACK = 0.1
"""Nominal share that the allocator holds beyond what is allocated at the peak."""


def _shared_memory(job: Job) -> Iterator[tuple[str, float]]:
    modes = job.modes
    yield f"family={modes.family}", 1.0
    if modes.basis == "unstated":
        yield "basis_unstated", 1.0
    if modes.precision in {"fp8", "mxfp8", "nvfp4"}:
        yield "low_precision", 1.0
    if modes.adapter:
        yield "adapter", 1.0
    if job.machine.generation == "tpu":
        yield "tpu", 1.0
