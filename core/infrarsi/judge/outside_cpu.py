"""Clause: the candidate's process tree does not work while it is stopped.

Decides: the CPU time is read by the runner from outside. Each turn may have used the larger of
0.05 s and 2 % of its own length while it waited.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict

_ALLOWED_S = 0.05
_ALLOWED_FRAC = 0.02


def clause(evidence: JudgedEvidence) -> Verdict:
    """Look at every turn of the candidate."""
    turns = [turn for turn in evidence.turns if turn.side == "candidate"]
    if not turns:
        gap = ("Candidate and baseline did not take turns.",)
        return answer("", missing=gap if "turns" in evidence.needs else ())
    used = max(
        (t.cpu_outside_turn_s for t in turns if t.cpu_outside_turn_s > _allowed_s(t.steps_s)),
        default=None,
    )
    violations = (
        (violation("T301", f"The job used {used:.2f} s of CPU time while it was stopped."),)
        if used is not None
        else ()
    )
    return answer(f"No work was done outside {len(turns)} turns.", violations)


def _allowed_s(steps_s: tuple[float, ...]) -> float:
    return max(_ALLOWED_S, _ALLOWED_FRAC * sum(steps_s))
