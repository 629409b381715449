"""Clause: a whole run, spawn to exit, takes no longer than its claimed steps.

Decides: one ungated run of N steps, N drawn at launch; wall time and the process tree's CPU
time must stay within the start-up allowance plus 1.05 N times the claim. Work hidden in any
place outside the timed turns shows here.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import EnduranceRun, JudgedEvidence
from infrarsi.judge.verdict import Verdict

_SLACK = 1.05
_GOOD_ENDS = ("finished", "stopped", "exit")


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the run's cost with its claim."""
    run = evidence.endurance
    if run is None:
        gap = ("No endurance run was made.",) if "endurance" in evidence.needs else ()
        return answer("", missing=gap)
    observation = run.observation
    if observation.end not in _GOOD_ENDS or observation.exit_code not in (None, 0):
        return answer("", missing=(f"The endurance run ended by {observation.end}.",))
    return answer(f"{run.n_steps} steps cost what was claimed.", tuple(_excess(run)))


def _excess(run: EnduranceRun) -> list[Violation]:
    n, observed = run.n_steps, run.observation
    violations: list[Violation] = []
    allowed_s = run.startup_wall_s + _SLACK * n * run.claimed_step_time_s
    if observed.wall_s > allowed_s:
        message = f"{n} steps took {observed.wall_s:.1f} s, by the claim at most {allowed_s:.1f} s."
        violations.append(violation("T312", message))
    if run.claimed_cpu_s_per_step is not None:
        allowed_s = run.startup_cpu_s + _SLACK * n * run.claimed_cpu_s_per_step
        if observed.cpu_s > allowed_s:
            message = f"{n} steps used {observed.cpu_s:.1f} s of CPU time, not {allowed_s:.1f} s."
            violations.append(violation("T303", message))
    return violations
