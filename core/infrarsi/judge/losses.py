"""The loss of a step over all ranks, on the scale of what the gradient is taken of.

The sum over micro-steps of what entered backward, averaged over ranks: regrouping rows leaves
it as it is wherever it leaves the gradient as it is.
"""

from collections.abc import Sequence

from infrarsi.wire.probe import RankEvidence, StepRecord


def step_loss(ranks: Sequence[StepRecord]) -> float | None:
    """One step's loss; None where a rank recorded none or a non-finite one."""
    losses = [loss for step in ranks for loss in step.losses]
    if not losses or any(not step.losses for step in ranks):
        return None
    finite = [loss for loss in losses if loss is not None]
    return sum(finite) / len(ranks) if len(finite) == len(losses) else None


def loss_curve(side: Sequence[RankEvidence]) -> dict[int, float]:
    """Loss by step index, where every rank has one."""
    by_index: dict[int, list[StepRecord]] = {}
    for rank in side:
        for step in rank.steps:
            by_index.setdefault(step.index, []).append(step)
    curve = {i: step_loss(r) for i, r in sorted(by_index.items()) if len(r) == len(side)}
    return {i: loss for i, loss in curve.items() if loss is not None}
