"""Clause: nothing is faster than its own arithmetic allows.

The model FLOPs of the locked baseline, over the step time, against the fixed roof: an MFU above
100 % means that work is missing or done elsewhere. Never recounts the candidate's FLOPs.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict


def clause(evidence: JudgedEvidence) -> Verdict:
    """Scale the baseline's MFU by the ratio of step times."""
    calibration, step_time_s = evidence.calibration, evidence.candidate_step_time_s
    if calibration is None or step_time_s is None:
        gap = ("The candidate's step time or the calibration is missing.",)
        return answer("", missing=gap if "calibration" in evidence.needs else ())
    if step_time_s <= 0:
        return answer("", (violation("T315", "A step takes no time at all."),))
    mfu = calibration.mfu_frac * calibration.step_time_s.value / step_time_s
    if mfu > 1:
        message = f"The step would need {100 * mfu:.0f} % of what the device can compute."
        return answer("", (violation("T315", message),))
    return answer(f"The step time is physically possible (MFU {100 * mfu:.1f} %).")
