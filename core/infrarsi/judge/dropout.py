"""Clause: where the baseline drops out, the candidate drops out as much.

The audit holds dropout still, so that regrouped rows can be compared; this clause looks at a step
with dropout as it is. How far it moves a gradient from the one without is set by rate and
placement, and both sides count the elements they drop: too little means that it was weakened or
left out. Regrouped rows draw other masks, so that the two noises agree in size only.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict

_NEGLIGIBLE = 1e-3
_COUNT_REL_ERR = 0.01
_RATIO = 1.33
"""By how much the noises may differ: a rate of 0.1 makes 1.45 times the noise of 0.05."""


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the noises of every audited step."""
    dropping = [c for c in evidence.audits if c.n_dropouts and c.unreadable is None]
    if not dropping:
        return answer("")
    counted = [v for c in dropping if (v := _fewer(c)) is not None]
    if counted:
        return answer("", tuple(counted[:1]))
    measured = [c for c in dropping if _is_measured(c)]
    if not measured:
        return answer("", missing=("How much the candidate drops out was not measured.",))
    found = [v for c in measured if (v := _breach(c)) is not None]
    return answer(
        f"As much is dropped out as in the baseline ({len(measured)} steps).", tuple(found[:1])
    )


def _fewer(c: AuditComparison) -> Violation | None:
    """A difference of what the processes counted; that they agree proves nothing."""
    ours, theirs = c.dropped_candidate, c.dropped_baseline
    if ours is None or not theirs or abs(ours - theirs) <= _COUNT_REL_ERR * theirs:
        return None
    return violation("L206", f"{ours:,.0f} elements are dropped out in a step, not {theirs:,.0f}.")


def _is_measured(c: AuditComparison) -> bool:
    return c.dropout_noise_candidate is not None and c.dropout_noise_baseline is not None


def _breach(c: AuditComparison) -> Violation | None:
    ours, theirs = c.dropout_noise_candidate or 0.0, c.dropout_noise_baseline or 0.0
    if theirs <= _NEGLIGIBLE or theirs / _RATIO <= ours <= theirs * _RATIO:
        return None
    how = "less" if ours < theirs else "more"
    return violation(
        "L206",
        f"Dropout moves the gradient {how} than the baseline's: by {ours:.2f} of its norm "
        f"instead of {theirs:.2f}.",
    )
