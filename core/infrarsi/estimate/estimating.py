"""A described job to its estimate: physics, corrected by public runs, with intervals."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from infrarsi.estimate.calibration import Table, tables
from infrarsi.estimate.flop_counts import peak_of
from infrarsi.estimate.job import Job, read_job
from infrarsi.estimate.parts import Parts, memory_parts, time_parts
from infrarsi.estimate.physics import Physics, physics, resolve_checkpointing
from infrarsi.estimate.spread_features import memory_spread_features, time_spread_features
from infrarsi.frozen import Frozen
from infrarsi.units import GIB

USABLE = 0.97
"""Share of the device that a peak can reach: no public run's was above 0.978."""

LOW, HIGH = 0.05, 0.95
"""Levels of the interval: nine of ten jobs lie in it."""


class Bounds(Frozen):
    """A value with its 90 % interval."""

    value: float
    low: float
    high: float


class Estimate(Frozen):
    """What is expected of one described job.

    `mfu_frac` is by one definition (causal half, active parameters, dense 16-bit peak), so an 8-bit
    job can be above 1. `p_fit` is the chance that the peak stays within what the device can plan
    with. `memory_terms_gib` add up to the peak's value. `omitted` names what the model leaves out
    and, as `assumed: column`, what was not told.
    """

    step_time_s: Bounds
    tokens_per_s_per_gpu: Bounds
    mfu_frac: Bounds
    peak_mem_gib: Bounds
    p_fit: float
    memory_terms_gib: dict[str, float]
    omitted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """Peak of the stage that needs most, bytes, its terms and the chance that it fits."""

    terms: dict[str, float]
    peak: Bounds
    p_fit: float


def estimate_job(told: Mapping[str, Any]) -> Estimate:
    """The estimate of a job told by its configuration columns (`read_job`).

    Memory is the allocator's peak unless `mem_basis` tells another: `device_used` adds the
    device's context, `allocator_reserved_peak` what the allocator holds back, and a basis that
    ends in `last_rank` asks for the last pipeline stage.

    Raises:
        UnreadableJob: size or device unknown, or a number that is none.
    """
    job = resolve_checkpointing(read_job(told))
    time_table, memory_table = tables()
    costs = physics(job)
    step = step_time(job, costs, time_table)
    memory = peak_memory(job, memory_table)
    each = job.step_tokens / job.layout.gpus
    rate = _inverse(step, each)
    share = costs.model_flops_per_token / job.machine.peak_16bit
    return Estimate(
        step_time_s=step,
        tokens_per_s_per_gpu=rate,
        mfu_frac=_times(rate, share),
        peak_mem_gib=_times(memory.peak, 1 / GIB),
        p_fit=memory.p_fit,
        memory_terms_gib={term: size / GIB for term, size in memory.terms.items()},
        omitted=omitted(job),
    )


def step_time(job: Job, costs: Physics, table: Table) -> Bounds:
    """Seconds of an optimizer step, never less than its FLOPs at the peak."""
    terms = table.corrected(time_parts(job, costs))
    least = (costs.flops - costs.recompute_flops) / max(peak_of(job.machine, job.modes.precision))
    spread, features = table.spread, time_spread_features(job, terms)
    value = max(sum(terms.values()), least)
    return Bounds(
        value=value,
        low=max(value * math.exp(spread.quantile(LOW, features)), least),
        high=value * math.exp(spread.quantile(HIGH, features)),
    )


def peak_memory(job: Job, table: Table) -> MemoryAnswer:
    """Peak memory of the stage that needs most, bytes."""
    terms = max(
        (table.corrected(parts) for parts in stages(job)), key=lambda found: sum(found.values())
    )
    value = sum(terms.values())
    spread, features = table.spread, memory_spread_features(job)
    room = math.log(USABLE * job.machine.capacity_gib * GIB / value)
    peak = Bounds(
        value=value,
        low=value * math.exp(spread.quantile(LOW, features)),
        high=value * math.exp(spread.quantile(HIGH, features)),
    )
    return MemoryAnswer(terms=terms, peak=peak, p_fit=spread.below(room, features))


_FIRST_STAGE = ("nanotron",)
"""Families whose published peaks are the first pipeline stage's."""


def stages(job: Job) -> tuple[Parts, ...]:
    """The parts of each stage that could need most: the first and the last."""
    last = memory_parts(job, first=False)
    if job.modes.basis.endswith("last_rank") and job.layout.pp > 1:
        return (last,)
    first = memory_parts(job, first=True)
    is_first = job.layout.pp == 1 or job.modes.family in _FIRST_STAGE
    return (first,) if is_first else (first, last)


def told_basis(job: Job, basis: str) -> Job:
    """The job asked for in another basis of memory."""
    return replace(job, modes=replace(job.modes, basis=basis))


def omitted(job: Job) -> tuple[str, ...]:
    """What the model leaves out of this job, and what it had to assume."""
    found = ["data loading", "stragglers", "evaluation and checkpoints", "host memory"]
    if job.modes.basis != "device_used":
        found.append("device context and communicator buffers")
    if job.layout.pp > 1:
        found.append("uneven pipeline stages")
    if job.model.experts:
        found.append("imbalance between experts")
    if job.modes.task != "pretrain":
        found.append("rows shorter than the sequence length")
    return (*found, *(f"assumed: {column}" for column in job.assumed))


def _inverse(bounds: Bounds, numerator: float) -> Bounds:
    low, high = numerator / bounds.high, numerator / bounds.low
    return Bounds(value=numerator / bounds.value, low=low, high=high)


def _times(bounds: Bounds, factor: float) -> Bounds:
    return Bounds(value=bounds.value * factor, low=bounds.low * factor, high=bounds.high * factor)
