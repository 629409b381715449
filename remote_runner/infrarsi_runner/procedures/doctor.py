"""Doctor: time and profile the untouched baseline in separate runs, and calibrate the noise."""

import os
from dataclasses import replace

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.errors import JobFailed
from infrarsi.place import Place
from infrarsi.trial import Completed
from infrarsi.wire.messages import Plan, Planned, Progressed
from infrarsi.wire.probe import Profile
from infrarsi.wire.results import (
    Calibration,
    DoctorResult,
    PredictionTable,
    Roof,
)
from infrarsi_runner.context import Context
from infrarsi_runner.predictions import prediction_table
from infrarsi_runner.procedures.calibrating import calibrate
from infrarsi_runner.procedures.control import control_units, n_control_units
from infrarsi_runner.procedures.job import N_CPUS, Job, open_job, require_completed
from infrarsi_runner.procedures.searched import Search, table_version
from infrarsi_runner.running import RunResult, outcome_of

TIMED_STEPS = 12
PROFILED_STEPS = 5
N_STAGES = 5


def doctor(context: Context) -> DoctorResult:
    """Measure the baseline of the request. Raises JobFailed where it does not run."""
    job = open_job(context, context.request.lock, context.request.source)
    context.emit_once("doctor/plan", Planned(plan=_first_plan(job)))
    preflight = _preflight(context, job)
    timed, completed = _timed(context, job)
    context.emit_once("doctor/plan-known", Planned(plan=_known_plan(job, completed.step_time_s)))
    profile = _profile(context, job)
    n_units = n_control_units(job.lock.contract.protocol, completed.step_time_s)
    controls, unit_cost_s = control_units(
        context,
        job,
        n_units,
        lambda n, first: _progress(
            context, 3, f"The baseline against itself, unit {n + 1}, {first} side first"
        ),
    )
    roof = _roof(context, job)
    calibration = calibrate(job, preflight, timed, completed, controls, unit_cost_s, roof)
    table = context.once("doctor/table", PredictionTable, lambda: _table(context, job, calibration))
    context.publish(table)
    return DoctorResult(calibration=calibration, profile=profile, hints=_hints(job, profile))


def _table(context: Context, job: Job, calibration: Calibration) -> PredictionTable:
    """What every value would give by the claims alone, so that hovers have a first answer."""
    with Search(job, calibration, seed=0) as search:
        return prediction_table(
            job.space, calibration, search.trials, search.child, version=table_version(context)
        )


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
            "A preflight of 4 steps, 15 timed steps, 7 profiled steps, two or four pairs of the "
            "baseline against itself, and a matmul roof.",
        ),
        expected_s=180.0,
    )


def _known_plan(job: Job, step_s: float) -> Plan:
    protocol = job.lock.contract.protocol
    turns = 2 * protocol.turn_pairs * (protocol.steps_per_turn + 1)
    steps = 7 + 2 * n_control_units(protocol, step_s) * (turns + 4)
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
