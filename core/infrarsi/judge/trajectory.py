"""Clause: run with the same seed, both sides draw the same loss curve within the policy.

Two-sided: a lower loss is as suspicious as a higher one. The root mean square over the common
steps must stay within the policy, a single step within three times of it. Leaves out the margin
calibrated from perturbations and curves over several seeds.
"""

import math

from infrarsi.contract.catalogue import violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.losses import loss_curve
from infrarsi.judge.verdict import Verdict

_MIN_STEPS = 3
_SINGLE_STEP = 3.0


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the two curves step by step, relative to the baseline's."""
    ours, theirs = loss_curve(evidence.candidate), loss_curve(evidence.baseline)
    common = sorted(ours.keys() & theirs.keys())
    if len(common) < _MIN_STEPS:
        return answer("", missing=(f"Only {len(common)} losses can be compared.",))
    policy = evidence.lock.contract.policy
    fp32 = evidence.precision_class() == "fp32"
    tolerance = policy.loss_rel_err_fp32 if fp32 else policy.loss_rel_err_16bit
    errors = [abs(ours[i] - theirs[i]) / max(abs(theirs[i]), 1e-12) for i in common]
    rms = math.sqrt(sum(e * e for e in errors) / len(errors))
    if rms > tolerance or max(errors) > _SINGLE_STEP * tolerance:
        first = next(i for i, e in zip(common, errors, strict=True) if e > tolerance)
        message = f"The loss leaves the baseline's curve at step {first}."
        return answer("", (violation("L224", message),))
    return answer(f"The loss follows the baseline's over {len(common)} steps.")
