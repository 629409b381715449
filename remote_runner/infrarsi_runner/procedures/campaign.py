"""Run: search knobs and patches together, then freeze and confirm the best."""

from typing import Any

from infrarsi.flops import mfu
from infrarsi.frozen import Frozen, Scalar
from infrarsi.knobs import Candidate, Setting
from infrarsi.patches import Materialised, describe, materialise
from infrarsi.trial import Completed, OutOfMemory, Trial
from infrarsi.wire.messages import Plan, Planned, Progressed, TrialEnded
from infrarsi.wire.results import (
    Calibration,
    Cost,
    DoctorResult,
    Finalist,
    PredictionTable,
    Promotion,
    RunResult,
)
from infrarsi_runner.context import Context
from infrarsi_runner.predictions import prediction_table
from infrarsi_runner.procedures.calibrating import N_DEVICES, machine_name
from infrarsi_runner.procedures.confirmation import Confirmation, Confirming, Effort
from infrarsi_runner.procedures.doctor import doctor
from infrarsi_runner.procedures.finalists import Chosen, FrozenBundle, choose_finalists, step_s
from infrarsi_runner.procedures.job import Job, open_job
from infrarsi_runner.procedures.pairing import FrozenCandidate
from infrarsi_runner.procedures.searched import baseline_trial, open_search, table_version, tell
from infrarsi_runner.procedures.trials import run_trial
from infrarsi_runner.searching import SearchChild

CONFIRM_RESERVE_FRAC = 0.5
OptionalSetting: Any = dict[str, Scalar] | None


class TrialPrediction(Frozen):
    """What was expected of a trial, journalled before it ran; named as in `Trial`."""

    predicted_step_time_s: tuple[float, float, float]
    predicted_p_fit: float


def campaign(context: Context) -> RunResult:
    """A whole campaign; resumable at any point, since every run is journalled under its key."""
    started_s = context.once("started", float, context.now_s)
    lock = context.request.lock
    measured = context.once("doctor", DoctorResult, lambda: _measured(context))
    doctor_s = context.once("doctor/took", float, lambda: context.now_s() - started_s)
    job = open_job(context, lock, context.request.source)
    calibration = measured.calibration
    context.emit_once("plan", Planned(plan=_plan(job, context, calibration)))
    with open_search(job, calibration, context.request.seed) as search:
        trials = _search(context, job, calibration, search)
        ranked = context.once("finalists", Chosen, lambda: choose_finalists(job, trials, search))
    searched_s = context.once("searched/at", float, context.now_s)
    deadline_s = started_s + doctor_s + 60 * context.request.budget.minutes
    finalists, promotion = _confirm(context, job, calibration, ranked.finalists, deadline_s)
    ended_s = context.once("ended", float, context.now_s)
    return RunResult(
        campaign=context.request.id,
        lock=lock,
        calibration=calibration,
        space=job.space,
        trials=tuple(trials),
        finalists=finalists,
        promoted=promotion,
        cost=_cost(trials, ended_s - started_s, doctor_s, ended_s - searched_s),
    )


def _measured(context: Context) -> DoctorResult:
    """Doctor's answer on these very sources and this machine, made now if there is none."""
    known = context.find_doctor(context.request.lock.digest)
    if known is not None and known.calibration.machine == machine_name():
        return known
    return doctor(context)


def _search(
    context: Context, job: Job, calibration: Calibration, search: SearchChild
) -> list[Trial]:
    baseline = baseline_trial(job, calibration)
    trials = [baseline]
    tell(search, baseline)
    budget_s = 60 * context.request.budget.minutes * CONFIRM_RESERVE_FRAC
    for number in range(1, context.request.budget.n_trials + 1):
        spent_s = sum(trial.wall_s for trial in trials)
        if spent_s > budget_s:
            break
        context.check()
        setting = context.once(f"trial/{number}/ask", OptionalSetting, search.ask)
        if setting is None:
            break
        candidate = Candidate(setting=setting)
        prediction = context.once(
            f"trial/{number}/prediction", TrialPrediction, lambda c=candidate: _predict(c, search)
        )
        context.emit_once(
            f"trial/{number}/progress",
            Progressed(
                stage="search",
                message=_sentence(job, setting),
                done=number - 1,
                total=context.request.budget.n_trials,
                left_s=_left_s(context, trials, number, budget_s - spent_s),
            ),
        )
        trial = context.once(
            f"trial/{number}",
            Trial,
            lambda number=number, candidate=candidate: run_trial(context, job, number, candidate),
        ).model_copy(update=prediction.model_dump())
        trials.append(trial)
        tell(search, trial)
        _publish(context, job, calibration, search, trials, number)
    return trials


def _predict(candidate: Candidate, search: SearchChild) -> TrialPrediction:
    """What is expected of a trial before it runs."""
    prediction = search.predict([candidate.setting])[0]
    step = prediction["step_time_s"]
    return TrialPrediction(
        predicted_step_time_s=(step["value"], step["low"], step["high"]),
        predicted_p_fit=prediction["p_fit"],
    )


def _publish(
    context: Context,
    job: Job,
    calibration: Calibration,
    search: SearchChild,
    trials: list[Trial],
    number: int,
) -> None:
    context.emit_once(
        f"trial/{number}/ended",
        TrialEnded(
            trial=trials[-1],
            changed=trials[-1].candidate.changed(job.space),
            best_ratio=_best_ratio(trials),
            n_oom=_n_oom(trials),
        ),
    )
    table = context.once(
        f"trial/{number}/table",
        PredictionTable,
        lambda: prediction_table(
            job.space, calibration, trials, search, version=table_version(context)
        ),
    )
    context.publish(table)


def _confirm(
    context: Context,
    job: Job,
    calibration: Calibration,
    ranked: tuple[FrozenBundle, ...],
    deadline_s: float,
) -> tuple[tuple[Finalist, ...], Promotion | None]:
    finalists: list[Finalist] = []
    effort = Effort(protocol=job.lock.contract.protocol, deadline_s=deadline_s)
    for bundle in ranked:
        made = materialise(bundle.candidate, job.space, job.sources, job.lock.contract.launch)
        assert isinstance(made, Materialised)
        name = f"trial-{bundle.trial}"
        tree = context.trees.candidate(job.commit, made.edits, f"{name}-confirmed")
        frozen = FrozenCandidate(name=name, tree=tree, launch=made.launch)
        confirmed = context.once(
            f"confirmed/{name}",
            Confirmation,
            lambda frozen=frozen: Confirming(context, job, frozen, calibration, effort).run(),
        )
        context.trees.discard(tree)
        finalists.append(
            Finalist(
                trial=bundle.trial,
                pruned=bundle.pruned,
                verdict=confirmed.verdict,
                violations=confirmed.judged.violations,
                missing=confirmed.judged.missing,
                speedup=confirmed.speedup,
            )
        )
        if confirmed.verdict == "accepted":
            return tuple(finalists), _promotion(job, calibration, bundle, made, confirmed)
    return tuple(finalists), None


def _promotion(
    job: Job,
    calibration: Calibration,
    bundle: FrozenBundle,
    made: Materialised,
    confirmed: Confirmation,
) -> Promotion:
    assert confirmed.speedup is not None
    tokens = calibration.tokens_per_step
    before = tokens / confirmed.step_s_before
    after = before * confirmed.speedup.ratio
    roof = calibration.roof.flops_per_s
    return Promotion(
        candidate=bundle.candidate,
        parts=describe(bundle.candidate, job.space),
        speedup=confirmed.speedup,
        n_units=confirmed.n_units,
        mfu_before_frac=mfu(before, calibration.flops_per_token, roof, N_DEVICES),
        mfu_after_frac=mfu(after, calibration.flops_per_token, roof, N_DEVICES),
        tokens_per_s_before=before,
        tokens_per_s_after=after,
        peak_mem_bytes_before=max(calibration.peak_mem_bytes),
        peak_mem_bytes_after=confirmed.peak_mem_bytes,
        edits=made.edits,
        launch=made.launch,
        checks=confirmed.judged.checks,
    )


def _plan(job: Job, context: Context, calibration: Calibration) -> Plan:
    budget = context.request.budget
    n_knobs = sum(1 for knob in job.space.knobs if knob.kind != "patch")
    n_patches = len(job.space.knobs) - n_knobs
    return Plan(
        sentences=(
            f"At most {budget.n_trials} trials over {n_knobs} launch knobs and {n_patches} "
            "patches, one at a time, each in a sandbox and a worktree of its own.",
            "Then up to "
            f"{job.lock.contract.protocol.max_finalists} finalists are confirmed in fresh pairs "
            "with the baseline, audited, and run once more at length.",
        ),
        expected_s=60 * budget.minutes,
    )


def _sentence(job: Job, setting: Setting) -> str:
    changed = Candidate(setting=setting).changed(job.space)
    if not changed:
        return "the baseline again"
    return ", ".join(k if v is True else f"{k}={v}" for k, v in changed.items())


def _left_s(context: Context, trials: list[Trial], number: int, budget_left_s: float) -> float:
    run = [t.wall_s for t in trials if t.wall_s > 0]
    if not run:
        return budget_left_s
    left = context.request.budget.n_trials - number + 1
    return min(left * sum(run) / len(run), budget_left_s)


def _best_ratio(trials: list[Trial]) -> float:
    measured = [t for t in trials if isinstance(t.outcome, Completed)]
    return step_s(measured[0]) / min(step_s(t) for t in measured)


def _n_oom(trials: list[Trial]) -> int:
    return sum(isinstance(t.outcome, OutOfMemory) for t in trials)


def _cost(trials: list[Trial], total_s: float, doctor_s: float, confirmation_s: float) -> Cost:
    failed = [t for t in trials if not isinstance(t.outcome, Completed)]
    return Cost(
        total_s=total_s,
        doctor_s=doctor_s,
        trials_s=sum(t.wall_s for t in trials),
        failed_trials_s=sum(t.wall_s for t in failed),
        confirmation_s=confirmation_s,
        n_trials=len(trials) - 1,
        n_oom=_n_oom(trials),
        n_failed=len(failed),
    )
