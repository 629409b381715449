"""Clause: run with the same seed, both sides draw the same loss curve within the policy.

Two-sided: a lower loss is as suspicious as a higher one. The root mean square over the common
steps must stay within the policy, a single step within three times of it. Where the baseline
drops out, regrouped rows draw other masks: then the differences may scatter, but not lean to one
side. A model laid out otherwise may draw other initial weights; that is left open, not rejected.
Every pair runs on a seed of its own, so that a promotion has followed the curve on four seeds at
least.
"""

import math
from collections.abc import Mapping, Sequence

from infrarsi.contract.catalogue import violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.losses import loss_curve
from infrarsi.judge.verdict import Verdict

_MIN_STEPS = 3
_SINGLE_STEP = 3.0
_MOST_SCATTER = 0.1
_MOST_LEAN = 0.02
_STANDARD_ERRORS = 3.0
"""Losses under other masks drift apart for many steps at a time, so that their mean difference is
seldom as small as independent noise would make it."""


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
    strays = rms > tolerance or max(errors) > _SINGLE_STEP * tolerance
    if strays and evidence.n_dropouts:
        strays = not _only_scatters(ours, theirs, common, tolerance)
    if strays and evidence.is_laid_out_otherwise() and errors[0] > tolerance:
        return answer("", missing=("The rewritten model starts from other initial weights.",))
    if strays:
        first = next(
            i for i, e in zip(common, errors, strict=True) if e >= min(max(errors), tolerance)
        )
        message = f"The loss leaves the baseline's curve at step {first}."
        return answer("", (violation("L224", message),))
    return answer(f"The loss follows the baseline's over {len(common)} steps.")


def _only_scatters(
    ours: Mapping[int, float], theirs: Mapping[int, float], common: Sequence[int], tolerance: float
) -> bool:
    """Whether the relative differences are noise around zero, none of it large."""
    leans = [(ours[i] - theirs[i]) / max(abs(theirs[i]), 1e-12) for i in common]
    mean = sum(leans) / len(leans)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in leans) / max(1, len(leans) - 1))
    standard_error = deviation / math.sqrt(len(leans))
    small = max(map(abs, leans)) <= _MOST_SCATTER
    return small and abs(mean) <= max(tolerance, _MOST_LEAN, _STANDARD_ERRORS * standard_error)
