"""Clause: losses, weights and gradients stay finite where the baseline's do."""

from infrarsi.contract.catalogue import violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict
from infrarsi.wire.probe import RankEvidence


def clause(evidence: JudgedEvidence) -> Verdict:
    """Look at every recorded loss and every audited tensor."""
    for audit in evidence.audits:
        if audit.n_nonfinite_baseline:
            return answer("", missing=(f"The baseline itself is not finite at step {audit.step}.",))
    baseline_bad = _first_nonfinite(evidence.baseline)
    if baseline_bad is not None:
        return answer("", missing=(f"The baseline's loss is not finite at step {baseline_bad}.",))
    violations = [
        violation("L219", f"Step {audit.step} has non-finite weights or gradients.")
        for audit in evidence.audits
        if audit.n_nonfinite_candidate
    ]
    bad = _first_nonfinite(evidence.candidate)
    if bad is not None:
        violations.append(violation("L219", f"The loss is not finite at step {bad}."))
    return answer("All losses and audited tensors are finite.", tuple(violations[:1]))


def _first_nonfinite(side: tuple[RankEvidence, ...]) -> int | None:
    bad = [step.index for rank in side for step in rank.steps if None in step.losses]
    return min(bad, default=None)
