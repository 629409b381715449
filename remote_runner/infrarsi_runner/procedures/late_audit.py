"""The audit of a step late in the endurance run, made again where the data had started over.

Micro-batches of another size leave out another rest at the end of the data, so that the rows of an
honest regrouping differ after it. Then a second run is audited before that place, as late as can
be, and that audit alone decides. A candidate whose rows differ before it gets no second try. In 16
bit the reference arm is measured at the late step too: gradients shrink as training goes on, and
rounding grows beside them.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.judging import judge
from infrarsi.judge.start_over import last_shared_step
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.pairing import Pairing, PairRecord, shapes_of
from infrarsi_runner.procedures.redoing import Audited, Redone
from infrarsi_runner.running import RunResult, RunSpec

_EXPLAINED = {"L208"}
"""What other rows look like in an audit. Frozen parts, types or dropout are not explained."""

_LAST_FRAC = 8
"""The second step is drawn from the last eighth of what lies before the end."""


class LateAudit:
    """The late audits of one frozen candidate, after its pairs."""

    def __init__(self, context: Context, pairing: Pairing, records: Sequence[PairRecord]) -> None:
        """`records` are its pairs."""
        self._context = context
        self._pairing = pairing
        self._records = records

    def redo(
        self, result: RunResult, spec: RunSpec, rng: random.Random
    ) -> tuple[AuditComparison, ...]:
        """Redo the late audited step of a run of `spec`, and of a second run where need be."""
        assert spec.late_audit is not None
        redone = self._redo(result, spec)
        found = redone.comparisons
        last = self._last_shared_step(result, redone, spec.late_audit)
        if last is None:
            return found
        first = _first_beyond_the_turns(self._records)
        if last < first:
            return left_open(found, last)
        step, n_steps = draw_step(rng, first, last)
        again = replace(spec, late_audit=step, window_steps=n_steps)
        second = self._context.runs.execute(again)
        found = self._redo(second, again).comparisons
        self._context.runs.discard(second)
        return found

    def _redo(self, result: RunResult, spec: RunSpec) -> Redone:
        assert spec.late_audit is not None
        audited = Audited(
            candidate=result,
            baseline=replace(self._pairing.baseline_spec("redo"), seed=spec.seed),
            shapes=shapes_of(self._records[0].baseline_evidence),
            steps=(spec.late_audit,),
        )
        return self._pairing.redoing.redo(audited)

    def _last_shared_step(self, result: RunResult, redone: Redone, step: int) -> int | None:
        record = next((r for r in reversed(self._records) if r.audits), self._records[-1])
        known = self._known()
        evidence = self._pairing.evidence(
            record, needs=("audit", "turns", "locked_files"), known=(*known, *redone.comparisons)
        )
        evidence = evidence.model_copy(update={"audits": (*known, *redone.comparisons)})
        if {v.code for v in judge(evidence).violations} != _EXPLAINED:
            return None
        sides = {"candidate": result.evidence, "baseline": redone.evidence}
        return last_shared_step(evidence.model_copy(update=sides), step)

    def _known(self) -> tuple[AuditComparison, ...]:
        return tuple(a for record in self._records for a in record.audits)


def draw_step(rng: random.Random, first: int, last: int) -> tuple[int, int]:
    """A step near the end of [first, last], and the length of a run that is told of it in time.

    A run learns half-way of a step in its last quarter.
    """
    step = rng.randrange(max(first, last - last // _LAST_FRAC), last + 1)
    return step, rng.randrange(step + 3, max(step + 4, 4 * step // 3))


def left_open(found: Sequence[AuditComparison], last: int) -> tuple[AuditComparison, ...]:
    """Comparisons that cannot be used, since no step up to `last` lies beyond the timed turns."""
    why = (
        f"the data start over soon after step {last}, and no step between the timed turns and "
        "that place is left to be audited instead."
    )
    return tuple(AuditComparison(step=c.step, rank=c.rank, unreadable=why) for c in found)


def _first_beyond_the_turns(records: Sequence[PairRecord]) -> int:
    """The first step that no pair reached."""
    sides = (side for record in records for side in (record.evidence, record.baseline_evidence))
    return max((s.index for side in sides for rank in side for s in rank.steps), default=-1) + 1
