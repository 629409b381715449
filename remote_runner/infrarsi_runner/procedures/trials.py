"""One trial of the search: static check, one timed run, and what the counters say of it."""

from dataclasses import replace

from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.judging import judge
from infrarsi.knobs import Candidate
from infrarsi.patches import Declined, materialise
from infrarsi.reading import follow
from infrarsi.rules import check_change
from infrarsi.trial import Completed, Crashed, Outcome, Rejected, Trial
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.job import N_CPUS, Job
from infrarsi_runner.running import outcome_of

WARMUP_STEPS = 3
WINDOW_STEPS = 7


def run_trial(context: Context, job: Job, number: int, candidate: Candidate) -> Trial:
    """Run one candidate; whatever happens to it is the trial's outcome."""
    started_s = context.now_s()
    outcome = _outcome(context, job, number, candidate)
    return Trial(
        number=number,
        candidate=candidate,
        outcome=outcome,
        wall_s=context.now_s() - started_s,
    )


def _outcome(context: Context, job: Job, number: int, candidate: Candidate) -> Outcome:
    launch = job.lock.contract.launch
    made = materialise(candidate, job.space, job.sources, launch)
    if isinstance(made, Declined):
        return Crashed(cause=f"The candidate cannot be built: {made.reason}")
    tree = context.trees.candidate(job.commit, made.edits, f"trial-{number}")
    try:
        sources = context.trees.sources(tree)
        now = follow(sources, made.launch, n_cpus=N_CPUS)
        found = check_change(job.lock, now, job.program)
        errors = tuple(v for v in found if v.severity == "error")
        if errors:
            return Rejected(violations=errors)
        spec = replace(
            job.candidate_spec("timed", f"trial-{number}", tree, made.launch),
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
    finally:
        context.trees.discard(tree)
