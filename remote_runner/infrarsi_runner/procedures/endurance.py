"""Endurance: one long ungated run of a frozen candidate, and the audit of a step late in it.

The length is drawn at launch and told half-way; the step is told with it. What behaves until
nobody seems to look, or until its measurement must be over, shows here. A candidate that takes
longer to start (it may compile) may do so, but has to run the longer: what it could have prepared
in that time covers less than half of the steps. A run that took too long
may have met another load on the machine: then the baseline runs as long beside it and says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from infrarsi.frozen import Frozen
from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.evidence import EnduranceRun
from infrarsi.run import RunObservation
from infrarsi.wire.messages import Progressed
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.late_audit import LateAudit
from infrarsi_runner.procedures.pairing import Pairing, PairRecord

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
    wall_drift: float = 1.0
    cpu_drift: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the turns say of a step of either side, s. `skew` is the baseline's mean by its median.

    `baseline_cpu_s` is CPU time of the whole process tree, 0 where it is not known;
    `unevenness_frac` is by how much the baseline's slowest turn exceeds its fastest.
    """

    candidate_s: float
    baseline_s: float
    baseline_cpu_s: float
    skew: float
    unevenness_frac: float


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

    def run(self, claim: Claim, at_least_s: float, attempt: int) -> EnduranceRecord:
        """One run of at least that long by the claim, s.

        The first is audited, later ones follow a run of the baseline.
        """
        self._context.check()
        key = f"{self._key}/endurance/{attempt}"
        self._context.emit_once(
            f"{key}/progress",
            Progressed(stage="confirmation", message="Endurance: one long run, nobody watching"),
        )
        return self._context.once(
            key, EnduranceRecord, lambda: self._compute(claim, at_least_s, attempt)
        )

    def expected(self, record: EnduranceRecord, claim: Claim) -> EnduranceRun:
        """The run beside what its pairs let expect of it."""
        records = self._records
        costs = [r.cpu_s_per_step for r in records if r.cpu_s_per_step is not None]
        wall_s = max(max(r.startup_wall_s, r.candidate_startup_wall_s) for r in records)
        cpu_s = max(max(r.startup_cpu_s, r.candidate_startup_cpu_s) for r in records)
        return EnduranceRun(
            n_steps=record.n_steps,
            observation=record.observation,
            claimed_step_time_s=claim.candidate_s,
            claimed_cpu_s_per_step=max(costs, default=None),
            startup_wall_s=STARTUP_SLACK * wall_s + record.allowance_s,
            startup_cpu_s=STARTUP_SLACK * cpu_s + record.allowance_s,
            wall_drift=max(claim.skew, record.wall_drift),
            cpu_drift=max(1.0, record.cpu_drift),
            unevenness_frac=claim.unevenness_frac,
        )

    def _compute(self, claim: Claim, at_least_s: float, attempt: int) -> EnduranceRecord:
        rng = self._pairing.draw("endurance", attempt)
        drift = self._drift(claim, at_least_s) if attempt else (1.0, 1.0)
        shortest = _n_steps(max(at_least_s, self._head_start_s()), claim.candidate_s)
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
        late = LateAudit(self._context, self._pairing, self._records)
        audits = late.redo(result, spec, rng) if attempt == 0 else ()
        dumped = sum(t.n_bytes for r in result.evidence for a in r.audits for t in a.tensors)
        self._context.runs.discard(result)
        return EnduranceRecord(
            n_steps=n_steps,
            observation=result.observation,
            audits=audits,
            allowance_s=_DUMP_S + dumped / _DUMP_BYTES_PER_S if dumped else 0.0,
            wall_drift=drift[0],
            cpu_drift=drift[1],
        )

    def _head_start_s(self) -> float:
        """Twice what the candidate takes longer to start than the baseline may."""
        ours = max(r.candidate_startup_wall_s for r in self._records)
        theirs = max(r.startup_wall_s for r in self._records)
        return 2 * max(0.0, STARTUP_SLACK * (ours - STARTUP_SLACK * theirs))

    def _drift(self, claim: Claim, at_least_s: float) -> tuple[float, float]:
        """Wall and CPU time of the baseline's steps in a long run, by those in its turns."""
        n_steps = _n_steps(at_least_s, claim.baseline_s)
        spec = replace(self._pairing.baseline_spec("beside"), mode="endurance")
        result = self._context.runs.execute(replace(spec, window_steps=n_steps))
        self._context.runs.discard(result)
        ends = sorted(step.at_s for step in result.observation.steps)
        if len(ends) < 2 or claim.baseline_cpu_s <= 0:
            return 1.0, 1.0
        wall_s = (ends[-1] - ends[0]) / max(1, n_steps - 1)
        cpu_s = (result.observation.cpu_s - result.startup_cpu_s) / max(1, n_steps - 1)
        return max(1.0, wall_s / claim.baseline_s), max(1.0, cpu_s / claim.baseline_cpu_s)


def _n_steps(at_least_s: float, step_s: float) -> int:
    return min(max(round(at_least_s / step_s), FEWEST_STEPS), MOST_STEPS)
