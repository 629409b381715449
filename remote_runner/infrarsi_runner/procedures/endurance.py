"""Endurance: one long ungated run of a frozen candidate, and the audit of a step late in it.

The length is drawn at launch and told half-way; the step is told with it. What behaves until
nobody seems to look, or until its measurement must be over, shows here.
"""

from collections.abc import Sequence
from dataclasses import replace

from infrarsi.frozen import Frozen
from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.evidence import EnduranceRun
from infrarsi.run import RunObservation
from infrarsi.wire.messages import Progressed
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.pairing import Pairing, PairRecord, shapes_of
from infrarsi_runner.procedures.redoing import Audited
from infrarsi_runner.running import RunResult

STARTUP_SLACK = 1.5
FEWEST_STEPS = 20
MOST_STEPS = 50_000
"""The number of steps is drawn from n to 2n for an n within these, below the probe's own limit."""

_DUMP_S = 0.2
_DUMP_BYTES_PER_S = 100e6
"""What writing an audit may take, on top of the claim."""


class EnduranceRecord(Frozen):
    """The endurance run as journalled. `allowance_s` is what its audit may have taken."""

    n_steps: int
    observation: RunObservation
    audits: tuple[AuditComparison, ...] = ()
    allowance_s: float = 0.0


class Enduring:
    """The endurance runs of one frozen candidate, after its pairs."""

    def __init__(
        self, context: Context, pairing: Pairing, records: Sequence[PairRecord], key: str
    ) -> None:
        """`records` are its pairs; `key` names the confirmation in the journal."""
        self._context = context
        self._pairing = pairing
        self._records = records
        self._key = key

    def run(self, claimed_s: float, at_least_s: float, attempt: int) -> EnduranceRecord:
        """One run of at least that long by the claim, s; the first is audited."""
        self._context.check()
        key = f"{self._key}/endurance/{attempt}"
        self._context.emit_once(
            f"{key}/progress",
            Progressed(stage="confirmation", message="Endurance: one long run, nobody watching"),
        )
        return self._context.once(
            key, EnduranceRecord, lambda: self._compute(claimed_s, at_least_s, attempt)
        )

    def claim(self, record: EnduranceRecord, claimed_s: float) -> EnduranceRun:
        """The run beside what its pairs let expect of it."""
        records = self._records
        costs = [r.cpu_s_per_step for r in records if r.cpu_s_per_step is not None]
        wall_s = max(r.startup_wall_s for r in records)
        cpu_s = max(r.startup_cpu_s for r in records)
        return EnduranceRun(
            n_steps=record.n_steps,
            observation=record.observation,
            claimed_step_time_s=claimed_s,
            claimed_cpu_s_per_step=max(costs, default=None),
            startup_wall_s=STARTUP_SLACK * wall_s + record.allowance_s,
            startup_cpu_s=STARTUP_SLACK * cpu_s + record.allowance_s,
        )

    def _compute(self, claimed_s: float, at_least_s: float, attempt: int) -> EnduranceRecord:
        rng = self._pairing.draw("endurance", attempt)
        shortest = min(max(round(at_least_s / claimed_s), FEWEST_STEPS), MOST_STEPS)
        n_steps = rng.randrange(shortest, 2 * shortest)
        spec = replace(
            self._pairing.candidate_spec("endurance", "candidate"),
            window_steps=n_steps,
            seed=rng.randrange(1, 1_000_000),
        )
        step = rng.randrange(3 * n_steps // 4, n_steps - 2)
        if attempt == 0:
            spec = replace(spec, late_audit=step)
        result = self._context.runs.execute(spec)
        audits = self._redo(result, spec.seed, step) if attempt == 0 else ()
        dumped = sum(t.n_bytes for r in result.evidence for a in r.audits for t in a.tensors)
        self._context.runs.discard(result)
        return EnduranceRecord(
            n_steps=n_steps,
            observation=result.observation,
            audits=audits,
            allowance_s=_DUMP_S + dumped / _DUMP_BYTES_PER_S if dumped else 0.0,
        )

    def _redo(self, result: RunResult, seed: int | None, step: int) -> tuple[AuditComparison, ...]:
        audited = Audited(
            candidate=result,
            baseline=replace(self._pairing.baseline_spec("redo"), seed=seed),
            shapes=shapes_of(self._records[0].baseline_evidence),
            steps=(step,),
        )
        known = tuple(a for record in self._records for a in record.audits)
        return self._pairing.redoing.compare(audited, known)
