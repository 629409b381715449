"""Verify: run before and after, and judge whether after keeps before's contract.

The verdict is on the contract; the gain stands beside it with an interval that may well be wide.
"""

from infrarsi.contract.catalogue import unsettled_by_runs
from infrarsi.contract.contract import Protocol
from infrarsi.contract.violation import Violation
from infrarsi.judge.verdict import Verdict
from infrarsi.reading import follow
from infrarsi.rules import check_change
from infrarsi.wire.messages import Plan, Planned
from infrarsi.wire.results import Speedup, VerifyResult
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.confirmation import (
    Confirming,
    Measured,
)
from infrarsi_runner.procedures.job import N_CPUS, Job, open_job
from infrarsi_runner.procedures.pairing import Effort, FrozenCandidate

QUICK = Effort(
    protocol=Protocol(looks=(2,), turn_pairs=1, steps_per_turn=8),
    audits=1,
    endurance_s=3.0,
    shortest_turn_s=0.8,
    longest_run_s=240.0,
)


def verify(context: Context) -> VerifyResult:
    """Static rules first; then pairs, audit and endurance, short or in full."""
    request = context.request
    job = open_job(context, request.lock, request.source)
    assert request.candidate_source is not None
    tree = context.trees.candidate(request.candidate_source, (), "after")
    after = request.after_lock.contract.launch if request.after_lock else job.launch
    frozen = FrozenCandidate(name="after", tree=tree, launch=after)
    static = _static(context, job, frozen)
    if static.kind == "rejected":
        return VerifyResult(verdict="rejected", violations=static.violations)
    started_s = context.once("started", float, context.now_s)
    deadline_s = started_s + 60 * request.budget.minutes
    full = Effort(protocol=job.lock.contract.protocol, deadline_s=deadline_s)
    effort = QUICK if request.quick else full
    context.emit_once("plan", Planned(plan=_plan(effort)))
    judged = judge_by_runs(Confirming(context, job, frozen, None, effort))
    return with_suspicions(judged, static.violations)


def with_suspicions(judged: VerifyResult, suspicions: tuple[Violation, ...]) -> VerifyResult:
    """The judge's answer beside what reading suspects.

    A suspicion that no run can settle keeps an acceptance open.
    """
    answer = judged.model_copy(update={"violations": (*suspicions, *judged.violations)})
    open_codes = unsettled_by_runs(v.code for v in suspicions)
    unsettled = [v for v in suspicions if v.code in open_codes]
    if judged.verdict != "accepted" or not unsettled:
        return answer
    missing = tuple(f"No run can settle {v.code}: {v.message}" for v in unsettled)
    return answer.model_copy(update={"verdict": "inconclusive", "missing": missing})


def judge_by_runs(confirming: Confirming) -> VerifyResult:
    """The judge's answer alone, without the static rules."""
    measured = confirming.measure()
    if measured.refused is None and not measured.units:
        late = ("The minutes were over before the first unit of pairs.",)
        return VerifyResult(verdict="inconclusive", violations=(), missing=late)
    verdict = measured.refused or confirming.final_verdict(measured)
    return VerifyResult(
        verdict=verdict.kind,
        violations=verdict.violations,
        missing=verdict.missing,
        speedup=_speedup(measured),
    )


def _static(context: Context, job: Job, frozen: FrozenCandidate) -> Verdict:
    sources = context.trees.sources(frozen.tree)
    now = follow(sources, frozen.launch, n_cpus=N_CPUS)
    found = check_change(job.lock, now, job.program)
    certain = any(v.severity == "error" for v in found)
    return Verdict(kind="rejected" if certain else "accepted", violations=found)


def _speedup(measured: Measured) -> Speedup | None:
    found = measured.decision.speedup if measured.decision else None
    if found is None:
        return None
    return Speedup(ratio=found.ratio, low=found.low, high=found.high, level=found.level)


def _plan(effort: Effort) -> Plan:
    protocol = effort.protocol
    return Plan(
        sentences=(
            f"Up to {2 * protocol.looks[-1]} process pairs of before and after, taking turns of "
            f"{protocol.steps_per_turn} steps; one update is redone by before's own code; one "
            "long run of after.",
        ),
        expected_s=15.0 * 2 * protocol.looks[-1],
    )
