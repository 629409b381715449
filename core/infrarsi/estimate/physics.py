"""Textbook costs of one job on one device: FLOPs, traffic, communication, bubble and memory.

`physics(job)` is pure arithmetic with no coefficient learned from runs; the estimate corrects it
and the search takes it as its prior. Sources: Korthikanti et al. 2022 (arXiv 2205.05198) for
activations and their parallel shares, Narayanan et al. 2021 (arXiv 2104.04473) for the bubble,
Rajbhandari et al. 2020 (arXiv 1910.02054) for ZeRO's volumes. Leaves out overlap, stragglers,
host time and the allocator.
"""

from dataclasses import dataclass, replace

from infrarsi.estimate.communication import Volume, volumes
from infrarsi.estimate.flop_counts import FlopCounts, flop_counts, peak_of
from infrarsi.estimate.job import Job
from infrarsi.estimate.memory_terms import stage_terms
from infrarsi.units import GIB

_FITS = 0.75


@dataclass(frozen=True, slots=True)
class Physics:
    """Costs of one optimizer step on one device. FLOP, bytes and seconds at the device's peaks.

    `model_flops_per_token` is by the one definition of MFU (active parameters that multiply,
    causal half of attention, no recomputation); `flops` is everything the device computes, with
    recomputation and without the gradients of frozen weights. `communication` holds a `Volume`
    (bytes, seconds, link) for each of tp, cp, ep, pp, dp that the layout uses. `bubble_frac` is
    the idle share of a pipeline's step. `memory_bytes` are the terms of the stage that needs most.
    """

    model_flops_per_token: float
    flops: float
    recompute_flops: float
    compute_s: float
    traffic_bytes: float
    traffic_s: float
    communication: dict[str, Volume]
    bubble_frac: float
    memory_bytes: dict[str, float]
    stage: str

    @property
    def communication_s(self) -> float:
        """Seconds on all links, one after the other."""
        return sum(volume.seconds for volume in self.communication.values())

    @property
    def peak_bytes(self) -> float:
        """Sum of the memory terms."""
        return sum(self.memory_bytes.values())

    @property
    def serial_s(self) -> float:
        """Step time without overlap at full rates: (compute + traffic + links) / (1 - bubble).

        Data parallel communication is outside the bubble.
        """
        dp = self.communication.get("dp")
        outside = dp.seconds if dp else 0.0
        inside = self.compute_s + self.traffic_s + self.communication_s - outside
        return inside / (1 - self.bubble_frac) + outside


def physics(job: Job) -> Physics:
    """The costs of a job read by `read_job`."""
    counts = flop_counts(job)
    stage, terms = _worst_stage(job)
    traffic = _traffic_bytes(job, terms)
    return Physics(
        model_flops_per_token=counts.model_per_token,
        flops=counts.device,
        recompute_flops=counts.recompute,
        compute_s=_compute_s(job, counts),
        traffic_bytes=traffic,
        traffic_s=traffic / job.machine.hbm,
        communication=volumes(job),
        bubble_frac=bubble_frac(job),
        memory_bytes=terms,
        stage=stage,
    )


def resolve_checkpointing(job: Job) -> Job:
    """The job with unknown activation checkpointing set to the lightest class that fits.

    People checkpoint because a job does not fit without; so none, then selective, then full is
    taken as the first with at most `_FITS` of the device. JAX frameworks, torchtune's recipes and
    Hugging Face's preparation of a quantised model checkpoint by default, LitGPT's does not.
    """
    if job.modes.checkpoint:
        return job
    if job.modes.family == "litgpt":
        return _checkpointed(job, "none")
    quantised = job.modes.family == "hf" and job.modes.weight_bytes < 1.5
    if quantised or job.modes.family in {"jax", "torchtune"}:
        return _checkpointed(job, "full")
    room = _FITS * job.machine.capacity_gib * GIB
    for checkpoint in ("none", "selective"):
        tried = _checkpointed(job, checkpoint)
        if sum(_worst_stage(tried)[1].values()) <= room:
            return tried
    return _checkpointed(job, "full")


def _checkpointed(job: Job, checkpoint: str) -> Job:
    return replace(job, modes=replace(job.modes, checkpoint=checkpoint))


def bubble_frac(job: Job) -> float:
    """Idle share of the step: (p - 1) / (v m + p - 1), with p stages, v chunks, m micro-batches."""
    layout = job.layout
    idle = layout.pp - 1
    return idle / (layout.vpp * layout.accumulation + idle) if idle else 0.0


def _compute_s(job: Job, counts: FlopCounts) -> float:
    """Linear layers at the peak of the precision, attention and logits at the 16-bit peak."""
    fast, slow = peak_of(job.machine, job.modes.precision)
    rest = counts.device - counts.device_linear
    return counts.device_linear / fast + rest / slow


def _worst_stage(job: Job) -> tuple[str, dict[str, float]]:
    first = stage_terms(job, first=True)
    if job.layout.pp == 1:
        return "only", first
    last = stage_terms(job, first=False)
    return ("first", first) if sum(first.values()) >= sum(last.values()) else ("last", last)


def _traffic_bytes(job: Job, terms: dict[str, float]) -> float:
    """Weights thrice a micro-batch, kept activations written and read, optimizer state once."""
    micro = job.layout.accumulation
    per_micro = 3 * terms["parameters"] + 4 * terms["activations"] + 2 * terms["logits"]
    return micro * per_micro + 2 * (terms["optimizer_state"] + terms["gradients"])
