"""One trial of the search: static check, one timed run, and what the counters say of it."""

from dataclasses import replace

from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.judging import judge
from infrarsi.knobs import Candidate
from infrarsi.trial import Completed, Outcome, Rejected, Trial
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.candidates import Built, built
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.running import outcome_of

WARMUP_STEPS = 3
WINDOW_STEPS = 7


def run_trial(context: Context, job: Job, number: int, candidate: Candidate) -> Trial:
    """Run one candidate; whatever happens to it is the trial's outcome."""
    started_s = context.now_s()
    with built(context, job, candidate, f"trial-{number}") as made:
        outcome = _measured(context, job, number, made) if isinstance(made, Built) else made
    return Trial(
        number=number,
        candidate=candidate,
        outcome=outcome,
        wall_s=context.now_s() - started_s,
    )


def _measured(context: Context, job: Job, number: int, made: Built) -> Outcome:
    spec = replace(
        job.candidate_spec("timed", f"trial-{number}", made.tree, made.launch),
        warmup_steps=WARMUP_STEPS,
        window_steps=WINDOW_STEPS,
    )
    result = context.runs.execute(spec)
    outcome = outcome_of(result, spec)
    if not isinstance(outcome, Completed):
        return outcome
    verdict = judge(
        JudgedEvidence(
            lock=job.lock,
            candidate=result.evidence,
            baseline=context.baseline_evidence(),
            candidate_run=result.observation,
            candidate_step_time_s=outcome.step_time_s,
            needs=(),
        )
    )
    if verdict.kind == "rejected":
        return Rejected(violations=verdict.violations)
    return outcome
