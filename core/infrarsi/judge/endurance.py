"""Clause: a whole run, spawn to exit, takes no longer than its claimed steps.

Decides: one ungated run of N steps, N drawn at launch, each announced by every rank; wall time
and the process tree's CPU time must stay within the start-up allowance plus 1.05 N times the
claim, by as much more as the baseline's own steps took longer beside it than in the turns. Work
hidden in any place outside the timed turns shows here. Wall time that exceeds the claim by no more
than the baseline's own turns differ on an uneven machine leaves the verdict open. So does wall time
alone where the job computes on CPUs and its CPU time is known and within its claim: hidden work
would have cost CPU time there, another load costs none. It is never accepted: sleeping in a run
that must be long, or another priority in the turns, looks the same.
"""

from itertools import count, takewhile

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import EnduranceRun, JudgedEvidence
from infrarsi.judge.verdict import Verdict

_SLACK = 1.05
_WALL = "T312"
_GOOD_ENDS = ("finished", "stopped")


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the run's cost with its claim."""
    run = evidence.endurance
    gap = _gap(evidence)
    if run is None or gap:
        return answer("", missing=(gap,) if gap else ())
    found = tuple(_excess(run))
    if _is_wall_alone(found) and _may_be_the_machine(run):
        gap = (
            "The machine is too uneven: the baseline's own turns differ as much as endurance does."
        )
        return answer("", missing=(gap,))
    if _is_wall_alone(found) and _would_show_as_cpu_time(evidence, run):
        gap = f"The machine had another load on it, or the job waited: {found[0].message}"
        return answer("", missing=(gap,))
    return answer(f"{run.n_steps} steps cost what was claimed.", found)


def exceeds_claim(evidence: JudgedEvidence) -> bool:
    """Whether a whole run cost more than its claim, and more than an uneven machine explains.

    Where the clause leaves such a run open, it is still no run that passed: it is repeated twice.
    """
    run = evidence.endurance
    if run is None or _gap(evidence):
        return False
    found = tuple(_excess(run))
    return bool(found) and not (_is_wall_alone(found) and _may_be_the_machine(run))


def _gap(evidence: JudgedEvidence) -> str:
    """Why there is no whole run to look at; empty where there is one or none is needed."""
    run = evidence.endurance
    if run is None:
        return "No endurance run was made." if "endurance" in evidence.needs else ""
    n_done = _steps_of_all_ranks(run, evidence.world_size)
    if n_done < run.n_steps:
        return f"The endurance run ended after {n_done} of {run.n_steps} steps."
    if run.observation.end not in _GOOD_ENDS or run.observation.exit_code not in (None, 0):
        return f"The endurance run ended by {run.observation.end}."
    return ""


def _is_wall_alone(found: tuple[Violation, ...]) -> bool:
    return bool(found) and all(v.code == _WALL for v in found)


def _would_show_as_cpu_time(evidence: JudgedEvidence, run: EnduranceRun) -> bool:
    """Whether hidden work had to cost CPU time, which is known; `_excess` holds it to its claim."""
    known = run.claimed_cpu_s_per_step is not None and run.observation.cpu_s > 0
    return known and evidence.computes_on_cpus()


def _may_be_the_machine(run: EnduranceRun) -> bool:
    steps_s = run.observation.wall_s - run.startup_wall_s
    claimed_s = run.n_steps * run.claimed_step_time_s * run.wall_drift
    return steps_s <= claimed_s * (_SLACK + run.unevenness_frac)


def _steps_of_all_ranks(run: EnduranceRun, world_size: int) -> int:
    """Steps from the first on that every rank announced, none left out."""
    seen = {(step.rank, step.index) for step in run.observation.steps}
    whole = (all((rank, index) in seen for rank in range(world_size)) for index in count())
    return sum(1 for _ in takewhile(bool, whole))


def _excess(run: EnduranceRun) -> list[Violation]:
    n, observed = run.n_steps, run.observation
    violations: list[Violation] = []
    allowed_s = run.startup_wall_s + _SLACK * n * run.claimed_step_time_s * run.wall_drift
    if observed.wall_s > allowed_s:
        message = f"{n} steps took {observed.wall_s:.1f} s, by the claim at most {allowed_s:.1f} s."
        violations.append(violation(_WALL, message))
    if run.claimed_cpu_s_per_step is not None:
        allowed_s = run.startup_cpu_s + _SLACK * n * run.claimed_cpu_s_per_step * run.cpu_drift
        if observed.cpu_s > allowed_s:
            message = f"{n} steps used {observed.cpu_s:.1f} s of CPU time, not {allowed_s:.1f} s."
            violations.append(violation("T303", message))
    return violations
