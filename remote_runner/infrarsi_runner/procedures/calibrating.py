"""From doctor's runs to a calibration: what was measured for one contract on one machine."""

import platform
import statistics
from pathlib import Path

from infrarsi.errors import JobFailed
from infrarsi.flops import CONVENTION, flops_per_token, mfu
from infrarsi.pair import Unit
from infrarsi.stats.noise import fit_noise
from infrarsi.stats.power import resolvable
from infrarsi.trial import Completed
from infrarsi.wire.probe import RankEvidence
from infrarsi.wire.results import Calibration, Interval, Resolvable, Roof
from infrarsi_runner.procedures.job import N_CPUS, Job
from infrarsi_runner.running import RunResult

RESOLVABLE_MINUTES = (5.0, 15.0, 60.0)
AUDITED_COST = 1.5
"""A confirming unit costs more than a control: one of its pairs has a step redone."""

N_DEVICES = 1
"""A CPU is one device, whatever the number of ranks on it."""


def calibrate(
    job: Job,
    preflight: RunResult,
    timed: RunResult,
    completed: Completed,
    controls: tuple[Unit, ...],
    unit_cost_s: float,
    roof: Roof,
) -> Calibration:
    """The calibration of a contract on this machine; `unit_cost_s` is the wall clock of a control.

    Raises:
        JobFailed: tokens cannot be counted.
        ImpossibleMfu: above 100 % of the roof.
    """
    contract = job.lock.contract
    tokens = tokens_per_step(timed.evidence)
    if tokens == 0:
        raise JobFailed(
            "The probe saw no integer ids in the model's inputs, so tokens cannot be counted.",
            "See docs/probe.md for what the probe supports.",
        )
    counts = [e.flops for e in preflight.evidence if e.flops is not None]
    per_token = flops_per_token(counts, tokens_per_step(preflight.evidence))
    step_s = completed.step_time_s
    times = completed.step_times_s or (step_s,)
    ratios = tuple(unit.log_ratio() for unit in controls)
    slots = tuple(unit.slot_log_ratio() for unit in controls)
    noise = fit_noise(ratios, slots)
    return Calibration(
        contract_digest=job.lock.digest,
        machine=machine_name(),
        step_time_s=_spread(step_s, times),
        step_cv_frac=statistics.pstdev(times) / statistics.fmean(times),
        tokens_per_step=tokens,
        flops_per_token=per_token,
        flops_convention=CONVENTION,
        roof=roof,
        mfu_frac=mfu(tokens / step_s, per_token, roof.flops_per_s, N_DEVICES),
        peak_mem_bytes=timed.observation.peak_rss_bytes or (completed.peak_mem_bytes,),
        base_mem_bytes=tuple(e.base_rss_bytes for e in timed.evidence),
        mem_limit_bytes=job.memory_budget_bytes,
        pair_log_sd=noise.sd or 0.0,
        aa_log_ratios=ratios,
        aa_slot_log_ratios=slots,
        resolvable=tuple(
            Resolvable(
                minutes=minutes,
                gain_frac=resolvable(noise, AUDITED_COST * unit_cost_s, minutes, contract.protocol),
            )
            for minutes in RESOLVABLE_MINUTES
        ),
        sandbox_level=timed.observation.sandbox_level,
        baseline_losses=_losses(timed.evidence),
    )


def _spread(center: float, times: tuple[float, ...]) -> Interval:
    ordered = sorted(times)
    k = len(ordered)
    low, high = ordered[int(0.025 * k)], ordered[min(k - 1, int(0.975 * k))]
    return Interval(value=center, low=min(low, center), high=max(high, center))


def _losses(evidence: tuple[RankEvidence, ...]) -> tuple[float, ...]:
    """Sum of the losses that entered backward in each step of rank 0."""
    first = next((e for e in evidence if e.rank == 0), None)
    if first is None:
        return ()
    return tuple(sum(value for value in step.losses if value is not None) for step in first.steps)


def machine_name() -> str:
    """Processor, cores and system, as one line."""
    processor = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            processor = next(
                (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                processor,
            )
    except OSError:
        pass
    return f"{processor}, {N_CPUS} cores, {platform.system()} {platform.machine()}"


def tokens_per_step(evidence: tuple[RankEvidence, ...]) -> int:
    """Tokens of one step, all ranks; 0 where the probe saw none."""
    return sum(e.steps[-1].tokens for e in evidence if e.steps)
