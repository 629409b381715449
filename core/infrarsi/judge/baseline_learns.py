"""Clause: the baseline itself learns, or equal losses would prove nothing.

Never a reason to reject: a baseline that stands still leaves the verdict open.
"""

from collections.abc import Sequence

from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.losses import loss_curve
from infrarsi.judge.verdict import Verdict

_MIN_STEPS = 6


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the first third of the longest loss curve known with its last third."""
    curve = _longest_curve(evidence)
    if len(curve) < _MIN_STEPS:
        return answer(
            "", missing=(f"{len(curve)} baseline losses are too few to tell whether it learns.",)
        )
    third = len(curve) // 3
    first, last = sum(curve[:third]) / third, sum(curve[-third:]) / third
    if last >= first:
        return answer("", missing=(f"The baseline's loss does not fall over {len(curve)} steps.",))
    return answer(f"The baseline's loss falls from {first:.3f} to {last:.3f}.")


def _longest_curve(evidence: JudgedEvidence) -> Sequence[float]:
    recorded = tuple(loss_curve(evidence.baseline).values())
    calibrated = evidence.calibration.baseline_losses if evidence.calibration else ()
    return max(recorded, calibrated, key=len)
