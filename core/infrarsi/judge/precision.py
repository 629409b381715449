"""Clause: the precision seen is the precision declared or allowed.

Hints only (a process can hide its casts); the update audit sees what was hidden. 16-bit
autocast with fp32 weights, state and loss is allowed where the policy says so.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict
from infrarsi.wire.probe import RankEvidence

_AUTOCAST = {"fp32": "", "bf16": "bfloat16", "fp16": "float16"}
_NARROW = frozenset({"bfloat16", "float16"})


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare autocast, the loss's type and the weights' types."""
    violations = [*_autocast(evidence), *_loss(evidence), *_weights(evidence)]
    return answer("The precision is the one declared.", tuple(violations))


def _autocast(evidence: JudgedEvidence) -> list[Violation]:
    contract = evidence.lock.contract
    allowed = {_AUTOCAST[contract.precision]}
    if contract.policy.allow_bf16_autocast:
        allowed.add("bfloat16")
    return [
        violation("L216", f"Autocast to {dtype} is not what the contract declares.")
        for dtype in sorted(evidence.autocasts() - allowed)
    ]


def _loss(evidence: JudgedEvidence) -> list[Violation]:
    ours, theirs = _loss_dtypes(evidence.candidate), _loss_dtypes(evidence.baseline)
    narrowed = sorted((ours & _NARROW) - theirs)
    return [violation("L202", f"The loss is computed in {dtype}.") for dtype in narrowed]


def _weights(evidence: JudgedEvidence) -> list[Violation]:
    ours, theirs = _weight_dtypes(evidence.candidate), _weight_dtypes(evidence.baseline)
    narrowed = sorted((ours & _NARROW) - theirs)
    return [violation("L203", f"Weights are kept in {dtype}.") for dtype in narrowed]


def _loss_dtypes(side: tuple[RankEvidence, ...]) -> frozenset[str]:
    seen = (step.loss_dtype for rank in side for step in rank.steps)
    return frozenset(d.removeprefix("torch.") for d in seen if d)


def _weight_dtypes(side: tuple[RankEvidence, ...]) -> frozenset[str]:
    return frozenset(d.removeprefix("torch.") for rank in side for d in rank.parameter_dtypes)
