"""Doctor: time and profile the untouched baseline in separate runs, and calibrate the noise."""

import os
import platform
import statistics
from dataclasses import replace
from pathlib import Path

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.errors import JobFailed
from infrarsi.flops import CONVENTION, flops_per_token, mfu
from infrarsi.pair import ProcessPair, Unit
from infrarsi.place import Place
from infrarsi.stats.noise import fit_noise
from infrarsi.stats.power import resolvable
from infrarsi.trial import Completed
from infrarsi.wire.messages import Plan, Planned, Progressed
from infrarsi.wire.probe import Profile, RankEvidence
from infrarsi.wire.results import (
    Calibration,
    DoctorResult,
    Interval,
    PredictionTable,
    Resolvable,
    Roof,
)
from infrarsi_runner.context import Context
from infrarsi_runner.predictions import prediction_table
from infrarsi_runner.procedures.drawing import draw
from infrarsi_runner.procedures.job import N_CPUS, Job, open_job, require_completed
from infrarsi_runner.procedures.searched import baseline_trial, open_search, tell
from infrarsi_runner.running import RunResult, outcome_of

TIMED_STEPS = 12
PROFILED_STEPS = 6
N_STAGES = 5
N_DEVICES = 1
"""A CPU is one device, whatever the number of ranks on it."""
RESOLVABLE_MINUTES = (5.0, 15.0, 60.0)


def doctor(context: Context) -> DoctorResult:
    """Measure the baseline of the request. Raises JobFailed where it does not run."""
    job = open_job(context, context.request.lock, context.request.source)
    context.emit_once("doctor/plan", Planned(plan=_first_plan(job)))
    preflight = _preflight(context, job)
    timed, completed = _timed(context, job)
    context.emit_once("doctor/plan-known", Planned(plan=_known_plan(job, completed.step_time_s)))
    profile = _profile(context, job)
    unit = aa_unit(context, job)
    roof = _roof(context, job)
    calibration = _calibrate(context, job, preflight, timed, completed, unit, roof)
    context.publish(context.once("doctor/table", PredictionTable, lambda: _table(job, calibration)))
    return DoctorResult(calibration=calibration, profile=profile, hints=_hints(job, profile))


def _table(job: Job, calibration: Calibration) -> PredictionTable:
    """What every value would give by the claims alone, so that hovers have a first answer."""
    baseline = baseline_trial(job, calibration)
    with open_search(job, calibration, seed=0) as search:
        tell(search, baseline)
        return prediction_table(job.space, calibration, [baseline], search, version=0)


def aa_unit(context: Context, job: Job) -> Unit:
    """The baseline against itself under the very scheme that confirms candidates."""
    pairs: list[ProcessPair] = []
    for first in ("baseline", "candidate"):
        _progress(context, 3, f"The baseline against itself, {first} side started first")
        result = context.once(
            f"doctor/aa/{first}",
            ProcessPair,
            lambda first=first: _aa_pair(context, job, first),
        )
        pairs.append(result)
    return Unit(pairs=(pairs[0], pairs[1]))


def _aa_pair(context: Context, job: Job, first: str) -> ProcessPair:
    protocol = job.lock.contract.protocol
    spec = job.spec("timed", "noise")
    result = context.runs.pair(
        spec,
        spec,
        first="baseline" if first == "baseline" else "candidate",
        turn_pairs=protocol.turn_pairs,
        steps_per_turn=protocol.steps_per_turn,
        audit=False,
        rng=draw(context, "aa", first),
    )
    if result.pair is None:
        failed = result.baseline if result.failed == "baseline" else result.candidate
        require_completed(outcome_of(failed, spec), "in a pair with itself")
        raise JobFailed(
            "Two copies of the baseline could not take turns on this machine.",
            "Free memory or lower memory_limit_gib, so that both fit at once.",
        )
    return result.pair


def _preflight(context: Context, job: Job) -> RunResult:
    _progress(context, 0, "Preflight: what the job does in one step")
    spec = replace(job.spec("preflight", "preflight"), warmup_steps=1, window_steps=3)
    result = context.once("doctor/preflight", RunResult, lambda: context.runs.execute(spec))
    require_completed(outcome_of(result, spec), "preflight")
    if not result.evidence or result.evidence[0].flops is None:
        raise JobFailed(
            "The probe saw no forward pass in the job's step.",
            "See docs/probe.md for what the probe supports.",
        )
    return result


def _timed(context: Context, job: Job) -> tuple[RunResult, Completed]:
    _progress(context, 1, f"Timing {TIMED_STEPS} steps of the untouched baseline")
    spec = replace(job.spec("timed", "baseline"), warmup_steps=3, window_steps=TIMED_STEPS)
    result = context.once("doctor/timed", RunResult, lambda: context.runs.execute(spec))
    return result, require_completed(outcome_of(result, spec), "timed run")


def _profile(context: Context, job: Job) -> Profile:
    _progress(context, 2, f"Profiling {PROFILED_STEPS} steps in a run of their own")
    spec = replace(
        job.spec("profile", "profile"),
        warmup_steps=2,
        window_steps=PROFILED_STEPS,
        spans=job.spans(),
    )
    result = context.once("doctor/profile", RunResult, lambda: context.runs.execute(spec))
    require_completed(outcome_of(result, spec), "profiled run")
    profiles = [e.profile for e in result.evidence if e.profile is not None]
    if not profiles:
        raise JobFailed("The profiled run left no profile.", "Run doctor again.")
    slowest = max(profiles, key=lambda p: p.step_time_s)
    return _relative_to(job, slowest)


def _relative_to(job: Job, profile: Profile) -> Profile:
    root = f"{job.tree}{os.sep}"
    lines = tuple(
        line.model_copy(update={"file": line.file.removeprefix(root)}) for line in profile.lines
    )
    return profile.model_copy(update={"lines": lines})


def _roof(context: Context, job: Job) -> Roof:
    _progress(context, 4, "Measuring this machine's matmul roof")
    return context.once(
        "doctor/roof", Roof, lambda: measured_roof(context.runs.roof(job.python, N_CPUS))
    )


def measured_roof(measured: dict[str, float]) -> Roof:
    """The roof of one device from `{"float32": FLOP/s, "bfloat16": FLOP/s, ...}`."""
    dtype = max(measured, key=lambda name: measured[name])
    return Roof(
        flops_per_s=measured[dtype],
        dtype=dtype,
        fp32_flops_per_s=measured["float32"],
        how=f"best of repeated square and model-shaped matmuls, {N_CPUS} threads",
    )


def tokens_per_step(evidence: tuple[RankEvidence, ...]) -> int:
    """Tokens of one step, all ranks; 0 where the probe saw none."""
    return sum(e.steps[-1].tokens for e in evidence if e.steps)


def _calibrate(
    context: Context,
    job: Job,
    preflight: RunResult,
    timed: RunResult,
    completed: Completed,
    unit: Unit,
    roof: Roof,
) -> Calibration:
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
    noise = fit_noise([unit.log_ratio()])
    unit_cost_s = 4 * contract.protocol.turn_pairs * (contract.protocol.steps_per_turn + 1) * step_s
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
        mem_limit_bytes=contract.memory_limit_bytes,
        pair_log_sd=noise.sd or 0.0,
        aa_log_ratios=(unit.log_ratio(),),
        resolvable=tuple(
            Resolvable(
                minutes=minutes,
                gain_frac=resolvable(noise, unit_cost_s, minutes, contract.protocol),
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


def _hints(job: Job, profile: Profile) -> tuple[Violation, ...]:
    """D9xx: phases whose share is worth a look, on the costliest line of the phase."""
    found: list[Violation] = []
    for phase, code, limit in (
        ("data", "D901", 0.1),
        ("communication", "D902", 0.1),
        ("other", "D903", 0.1),
    ):
        share = getattr(profile, f"{phase}_s") / profile.step_time_s
        if share < limit:
            continue
        lines = [line for line in profile.lines if line.phase == phase]
        place = None
        if lines and job.sources.text(lines[0].file) is not None:
            top = lines[0]
            place = Place(file=top.file, line=top.line, end_line=top.line, end_column=1000)
        found.append(
            violation(
                code,
                f"{100 * share:.0f} % of the step is {phase} time.",
                severity="info",
                place=place,
            )
        )
    return tuple(found)


def _first_plan(job: Job) -> Plan:
    contract = job.lock.contract
    return Plan(
        sentences=(
            f"The untouched baseline of job {contract.job}, {contract.launch.n_processes} "
            "process(es), in a sandbox on this machine.",
            "A preflight of 4 steps, 15 timed steps, 8 profiled steps, two pairs of the baseline "
            "against itself, and a matmul roof.",
        ),
        expected_s=180.0,
    )


def _known_plan(job: Job, step_s: float) -> Plan:
    protocol = job.lock.contract.protocol
    steps = 8 + 4 * (protocol.turn_pairs * (protocol.steps_per_turn + 1) + 3)
    return Plan(
        sentences=(f"A step takes about {step_s:.2f} s; {steps} steps are left to run.",),
        expected_s=steps * step_s + 60.0,
    )


def _progress(context: Context, done: int, message: str) -> None:
    context.check()
    context.emit_once(
        f"doctor/progress/{message}",
        Progressed(stage="doctor", message=message, done=done, total=N_STAGES),
    )
