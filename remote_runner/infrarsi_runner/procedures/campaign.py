"""Run: search knobs and patches together, then freeze and confirm the best."""

from infrarsi.flops import mfu
from infrarsi.frozen import Frozen
from infrarsi.patches import Declined, Materialised, describe, materialise
from infrarsi.wire.messages import Plan, Planned
from infrarsi.wire.results import (
    Calibration,
    DoctorResult,
    Finalist,
    Price,
    Promotion,
    Reliability,
    RunResult,
)
from infrarsi_runner.context import Context
from infrarsi_runner.predictions import prices, reliability
from infrarsi_runner.procedures.anchoring import Anchoring
from infrarsi_runner.procedures.calibrating import N_DEVICES, machine_name
from infrarsi_runner.procedures.confirmation import Confirmation, Confirming, Effort
from infrarsi_runner.procedures.costs import add_up
from infrarsi_runner.procedures.doctor import doctor
from infrarsi_runner.procedures.finalists import (
    Chosen,
    FrozenBundle,
    Tried,
    choose_finalists,
    next_finalist,
)
from infrarsi_runner.procedures.job import Job, open_job
from infrarsi_runner.procedures.pairing import FrozenCandidate
from infrarsi_runner.procedures.screening import Screening
from infrarsi_runner.procedures.searched import Search

REUSED_S = 1.0
"""A doctor that took less only recalled an earlier one's measurements."""


class Learned(Frozen):
    """What the trials taught, as journalled when the search ended."""

    prices: tuple[Price, ...]
    reliability: tuple[Reliability, ...]


def campaign(context: Context) -> RunResult:
    """A whole campaign; resumable at any point, since every run is journalled under its key."""
    started_s = context.once("started", float, context.now_s)
    lock = context.request.lock
    measured = context.once("doctor", DoctorResult, lambda: _measured(context))
    doctor_s = context.once("doctor/took", float, lambda: context.now_s() - started_s)
    job = open_job(context, lock, context.request.source)
    calibration = measured.calibration
    context.emit_once("plan", Planned(plan=_plan(job, context, calibration)))
    anchoring = Anchoring(
        context, job, calibration, started_s, doctor_s if doctor_s > REUSED_S else None
    )
    with Search(job, calibration, context.request.seed) as search:
        screened = Screening(context, job, calibration, search, anchoring).run()
        learned = context.once("learned", Learned, lambda: _learned(calibration, search))
        ranked = context.once(
            "finalists",
            Chosen,
            lambda: choose_finalists(
                job, screened.trials, search.child, noise_sd=anchoring.drift().noise_sd
            ),
        )
    searched_s = context.once("searched/at", float, context.now_s)
    deadline_s = started_s + doctor_s + 60 * context.request.budget.minutes
    finalists, promotion = _confirm(context, job, calibration, ranked, deadline_s)
    ended_s = context.once("ended", float, context.now_s)
    return RunResult(
        campaign=context.request.id,
        lock=lock,
        calibration=calibration,
        space=job.space,
        trials=tuple(screened.trials),
        finalists=finalists,
        promoted=promotion,
        cost=add_up(
            screened,
            total_s=ended_s - started_s,
            doctor_s=doctor_s,
            confirmation_s=ended_s - searched_s,
        ),
        turned_away=tuple(screened.turned_away),
        anchors=tuple(screened.anchors),
        prices=learned.prices,
        reliability=learned.reliability,
    )


def _measured(context: Context) -> DoctorResult:
    """Doctor's answer on these very sources and this machine, made now if there is none."""
    known = context.find_doctor(context.request.lock.digest)
    if known is not None and known.calibration.machine == machine_name():
        return known
    return doctor(context)


def _learned(calibration: Calibration, search: Search) -> Learned:
    return Learned(prices=prices(calibration, search.child), reliability=reliability(search.child))


def _confirm(
    context: Context, job: Job, calibration: Calibration, chosen: Chosen, deadline_s: float
) -> tuple[tuple[Finalist, ...], Promotion | None]:
    """Confirm one bundle after the other until one is accepted."""
    finalists: list[Finalist] = []
    tried: list[Tried] = []
    protocol = job.lock.contract.protocol
    effort = Effort(protocol=protocol, deadline_s=deadline_s)
    while bundle := next_finalist(chosen, job.space, tried, protocol.max_finalists):
        made = materialise(bundle.candidate, job.space, job.sources, job.launch)
        if isinstance(made, Declined):
            tried.append(Tried(bundle=bundle, verdict="rejected"))
            continue
        tree = context.trees.candidate(job.commit, made.edits, f"{bundle.name}-confirmed")
        frozen = FrozenCandidate(name=bundle.name, tree=tree, launch=made.launch)
        confirmed = context.once(
            f"confirmed/{bundle.name}",
            Confirmation,
            lambda frozen=frozen: Confirming(context, job, frozen, calibration, effort).run(),
        )
        context.trees.discard(tree)
        codes = tuple(v.code for v in confirmed.judged.violations)
        tried.append(Tried(bundle=bundle, verdict=confirmed.verdict, codes=codes))
        finalists.append(_finalist(bundle, confirmed))
        if confirmed.verdict == "accepted":
            return tuple(finalists), _promotion(job, calibration, bundle, made, confirmed)
    return tuple(finalists), None


def _finalist(bundle: FrozenBundle, confirmed: Confirmation) -> Finalist:
    return Finalist(
        trial=bundle.trial,
        pruned=bundle.pruned,
        verdict=confirmed.verdict,
        violations=confirmed.judged.violations,
        missing=confirmed.judged.missing,
        speedup=confirmed.speedup,
    )


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
            "patches, one at a time, each in a sandbox and a worktree of its own; what was never "
            "tried before runs for a few steps of a smaller job first.",
            "Then up to "
            f"{job.lock.contract.protocol.max_finalists} finalists are confirmed in fresh pairs "
            "with the baseline, audited, and run once more at length.",
        ),
        expected_s=60 * budget.minutes,
    )
