"""Counters of the two sides set against each other: hints that name what an audit finds.

The processes counted for themselves, so that agreement proves nothing; a disagreement is an
admission. The most specific explanation comes first and hides the ones that follow from it.
"""

from collections.abc import Callable, Sequence

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.wire.probe import RankEvidence, StepRecord

Side = Sequence[StepRecord]
"""One step's records, one a rank."""

_IGNORED_OPTIONS = frozenset(
    {"fused", "foreach", "capturable", "differentiable", "lr", "initial_lr"}
)
_LR_REL_ERR = 1e-6


def workload_hint(evidence: JudgedEvidence) -> Violation | None:
    """The first workload difference over the common steps, or None where all counts agree."""
    for ours, theirs in evidence.common_steps():
        found = shape_hint(ours, theirs) or _content_hint(evidence, ours, theirs)
        if found:
            return found
    return None


def update_hint(evidence: JudgedEvidence) -> Violation | None:
    """A difference of schedule or optimizer that explains another update from equal gradients."""
    for ours, theirs in evidence.common_steps():
        a, b = ours[0].learning_rates, theirs[0].learning_rates
        if len(a) == len(b) and any(
            abs(x - y) > _LR_REL_ERR * abs(y) for x, y in zip(a, b, strict=True)
        ):
            return violation(
                "L211", f"Step {ours[0].index} uses another learning rate than the baseline."
            )
    if _optimizers(evidence.candidate) != _optimizers(evidence.baseline):
        return violation("L210", "The optimizer or its settings differ from the baseline's.")
    return None


def shape_hint(ours: Side, theirs: Side) -> Violation | None:
    """A difference of one step in lengths, rows or tokens, whatever the rows hold."""
    index = ours[0].index
    lengths = _lengths(ours), _lengths(theirs)
    if all(lengths) and lengths[0] != lengths[1]:
        return violation(
            "W102",
            f"Step {index} trains on sequences of {_listed(lengths[0])} tokens instead of "
            f"{_listed(lengths[1])}.",
        )
    rows = _total(ours, _rows), _total(theirs, _rows)
    if rows[0] != rows[1]:
        return _rows_hint(ours, theirs, rows)
    tokens = _total(ours, _tokens), _total(theirs, _tokens)
    if tokens[0] != tokens[1]:
        return violation("W102", f"Step {index} sees {tokens[0]} tokens instead of {tokens[1]}.")
    return None


def _rows_hint(ours: Side, theirs: Side, rows: tuple[int, int]) -> Violation:
    """Rows per update differ: an update left out if the loss was not divided anew, else the batch.

    Dividing the loss by the accumulation keeps its sum over the step; skipping an update
    multiplies it.
    """
    index = ours[0].index
    sums = _loss_sum(ours), _loss_sum(theirs)
    skipped = rows[0] > rows[1] > 0 and rows[0] % rows[1] == 0
    if skipped and sums[1] > 0 and sums[0] / sums[1] > 0.75 * rows[0] / rows[1]:
        n = rows[0] // rows[1]
        return violation(
            "W103", f"Only one of {n} updates is made (step {index} holds {rows[0]} rows)."
        )
    return violation("W101", f"Step {index} is taken on {rows[0]} sequences instead of {rows[1]}.")


def inputs_sum(side: Side) -> int | None:
    """The hash of all rows of one step; None where a rank has none."""
    return _hash_sum(side, _inputs)


def _content_hint(evidence: JudgedEvidence, ours: Side, theirs: Side) -> Violation | None:
    index = ours[0].index
    inputs = _hash_sum(ours, _inputs), _hash_sum(theirs, _inputs)
    if None not in inputs and inputs[0] != inputs[1]:
        if _repeats(evidence):
            return violation("W106", "The same rows are trained on again and again.")
        return violation("W108", f"Step {index} trains on other rows than the baseline.")
    targets = _hash_sum(ours, _targets), _hash_sum(theirs, _targets)
    if None not in targets and targets[0] != targets[1]:
        return violation("L204", f"Step {index} has other targets or another mask.")
    positions = _known_total(ours, _positions), _known_total(theirs, _positions)
    if None not in positions and positions[0] != positions[1]:
        return violation(
            "L204",
            f"{positions[0]} positions enter the loss of step {index} instead of {positions[1]}.",
        )
    return None


def _repeats(evidence: JudgedEvidence) -> bool:
    """The candidate's steps share a hash where the baseline's are all different."""
    steps = evidence.common_steps()
    ours = [_hash_sum(c, _inputs) for c, _ in steps]
    theirs = [_hash_sum(b, _inputs) for _, b in steps]
    return len(set(ours)) < len(ours) and len(set(theirs)) == len(theirs)


def _optimizers(side: Sequence[RankEvidence]) -> list[tuple[str, list[dict[str, str]]]]:
    return [
        (o.name.rpartition(".")[2], [_options(g) for g in o.groups])
        for rank in side
        for o in rank.optimizers
    ]


def _options(group: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in group.items() if k not in _IGNORED_OPTIONS}


def _rows(step: StepRecord) -> int:
    return step.rows


def _tokens(step: StepRecord) -> int:
    return step.tokens


def _positions(step: StepRecord) -> int | None:
    return step.positions_in_loss


def _inputs(step: StepRecord) -> str | None:
    return step.inputs_hash


def _targets(step: StepRecord) -> str | None:
    return step.targets_hash


def _total(side: Side, count: Callable[[StepRecord], int]) -> int:
    return sum(count(step) for step in side)


def _known_total(side: Side, count: Callable[[StepRecord], int | None]) -> int | None:
    counts = [count(step) for step in side]
    return None if None in counts else sum(c for c in counts if c is not None)


def _hash_sum(side: Side, hash_of: Callable[[StepRecord], str | None]) -> int | None:
    """Sum over ranks modulo 2**64; None where a rank has none or wrote nonsense."""
    hashes = [hash_of(step) for step in side]
    try:
        return sum(int(h, 16) for h in hashes if h is not None) % 2**64 if all(hashes) else None
    except ValueError:
        return None


def _lengths(side: Side) -> frozenset[int]:
    return frozenset(step.seq_len for step in side if step.seq_len)


def _loss_sum(side: Side) -> float:
    return sum(loss or 0.0 for step in side for loss in step.losses)


def _listed(lengths: frozenset[int]) -> str:
    return " and ".join(str(n) for n in sorted(lengths))
