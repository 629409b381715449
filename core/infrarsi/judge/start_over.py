"""Where the baseline's data start over, and whether that explains rows that differ after it.

A loader that hands out micro-batches leaves out what is too short for one at the end of the data.
Regrouped micro-batches leave out another rest there, so that honest rows differ from then on. The
sign is the baseline's own: in its redo, rows that an earlier step had come back at once and in
bulk. Rows drawn with replacement come back a few at a time, and explain nothing.
Decides only whether a late audit is made again before that place; what that audit finds decides.
"""

from collections.abc import Sequence

from infrarsi.judge.evidence import JudgedEvidence, steps_by_index
from infrarsi.judge.hints import inputs_sum, shape_hint, update_hint, workload_hint
from infrarsi.wire.probe import RankEvidence, StepRecord

_BULK = 0.5
"""Part of a step's rows that comes back where data start over. Each of n ranks remembers its own
rows only, and shuffled data bring it back one n-th of them."""

_FEW = 0.1
"""Part that may come back by chance, of the same."""

_MARGIN_STEPS = 2
"""The step that runs over the end may hold few rows from the start, and the one before it ends
short where the last micro-batch does."""


def start_over_step(baseline: Sequence[RankEvidence]) -> int | None:
    """The first step with rows of an earlier one, where most come back from then on; None else."""
    if not baseline:
        return None
    first: int | None = None
    for index, side in sorted(steps_by_index(tuple(baseline)).items()):
        seen_frac = _seen_frac(side)
        if seen_frac is None:
            return None
        seen_frac *= len(baseline)
        if seen_frac >= _BULK:
            return index if first is None else first
        if first is not None:
            return None
        first = index if seen_frac > _FEW else None
    return None


def last_shared_step(evidence: JudgedEvidence, step: int) -> int | None:
    """The last step at which both sides must have the same rows; None where nothing is explained.

    `evidence` holds a long run of the candidate and the baseline's redo of its step `step`, which
    differs. It is explained where the baseline has started over before it, the candidate says that
    it groups its micro-steps otherwise, had the same rows in every step until then, and has other
    rows now, but as many, as long, and under the same rates and optimizers.
    """
    end = start_over_step(evidence.baseline)
    if end is None or end > step:
        return None
    last = end - _MARGIN_STEPS
    before = _until(evidence, last)
    if not _is_whole(before, last) or not _is_regrouped(before) or workload_hint(before):
        return None
    if update_hint(_until(evidence, step)) or not _has_other_rows(evidence, step):
        return None
    return last


def _seen_frac(side: Sequence[StepRecord]) -> float | None:
    seen = [record.rows_seen for record in side]
    rows = sum(record.rows for record in side)
    if rows == 0 or None in seen:
        return None
    return sum(n for n in seen if n is not None) / rows


def _until(evidence: JudgedEvidence, last: int) -> JudgedEvidence:
    sides = {
        name: tuple(
            rank.model_copy(update={"steps": tuple(s for s in rank.steps if s.index <= last)})
            for rank in side
        )
        for name, side in (("candidate", evidence.candidate), ("baseline", evidence.baseline))
    }
    return evidence.model_copy(update=sides)


def _is_whole(before: JudgedEvidence, last: int) -> bool:
    """Whether both sides tell of the rows of every step that the baseline recorded until there."""
    told = {
        ours[0].index
        for ours, theirs in before.common_steps()
        if inputs_sum(ours) is not None and inputs_sum(theirs) is not None
    }
    first = min(steps_by_index(before.baseline), default=last + 1)
    return bool(told) and told >= set(range(first, last + 1))


def _is_regrouped(before: JudgedEvidence) -> bool:
    return all(a[0].micro_steps != b[0].micro_steps for a, b in before.common_steps())


def _has_other_rows(evidence: JudgedEvidence, step: int) -> bool:
    """Whether both say that the rows of the step differ, in nothing but which they are."""
    for ours, theirs in evidence.common_steps():
        if ours[0].index == step:
            sums = inputs_sum(ours), inputs_sum(theirs)
            return None not in sums and sums[0] != sums[1] and shape_hint(ours, theirs) is None
    return False
