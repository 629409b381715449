"""Confirmation: a frozen candidate against the baseline on fresh pairs; the only way to promote.

Each unit is two process pairs, the baseline started first in one and the candidate in the other,
on a seed neither side has seen. One pair of each unit is audited at a step drawn after launch.
"""

from typing import Literal

from infrarsi.frozen import Frozen
from infrarsi.judge import ended_early, endurance
from infrarsi.judge.evidence import JudgedEvidence, Need
from infrarsi.judge.judging import judge
from infrarsi.judge.verdict import Verdict
from infrarsi.pair import ProcessPair, Unit
from infrarsi.stats.confirmation import Decision, decide
from infrarsi.stats.noise import fit_noise
from infrarsi.trial import Rejected
from infrarsi.wire.messages import Progressed
from infrarsi.wire.results import Calibration, Speedup
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.endurance import Claim, Enduring
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.procedures.pairing import (
    Effort,
    FrozenCandidate,
    Pairing,
    PairRecord,
    mean_step_s,
    median_step_s,
    turn_means_s,
)
from infrarsi_runner.running import Side


class Confirmation(Frozen):
    """What came of it. `speedup` is the confirmation's own estimate, never a search reading."""

    verdict: Literal["accepted", "rejected", "inconclusive", "not_resolved", "no_gain"]
    judged: Verdict
    speedup: Speedup | None = None
    n_units: int = 0
    step_s_before: float = 0.0
    peak_mem_bytes: int = 0


class Measured(Frozen):
    """The units so far, and what ended them: a decision, or a side that could not be accepted."""

    units: tuple[Unit, ...] = ()
    records: tuple[PairRecord, ...] = ()
    decision: Decision | None = None
    refused: Verdict | None = None


class Confirming:
    """The confirmation of one frozen candidate against the job's baseline."""

    def __init__(
        self,
        context: Context,
        job: Job,
        frozen: FrozenCandidate,
        calibration: Calibration | None,
        effort: Effort | None = None,
    ) -> None:
        """Bind what every step needs; nothing runs yet."""
        self._effort = effort or Effort(protocol=job.lock.contract.protocol)
        self._context = context
        self._frozen = frozen
        self._job = job
        self._noise = (
            fit_noise(calibration.aa_log_ratios, calibration.aa_slot_log_ratios)
            if calibration
            else fit_noise(())
        )
        self._pairing = Pairing(context, job, frozen, calibration, self._effort)
        self._key = f"confirm/{frozen.name}"

    def run(self) -> Confirmation:
        """Units up to each planned look, then endurance, then the judge on everything."""
        measured = self.measure()
        if measured.refused is not None:
            return Confirmation(verdict=measured.refused.kind, judged=measured.refused)
        assert measured.decision is not None
        if not measured.units:
            missing = ("The minutes were over before the first unit.",)
            return Confirmation(
                verdict="not_resolved", judged=Verdict(kind="inconclusive", missing=missing)
            )
        found = Confirmation(
            verdict="not_resolved",
            judged=measured.records[-1].verdict or Verdict(kind="inconclusive"),
            speedup=_speedup(measured.decision),
            n_units=len(measured.units),
            step_s_before=median_step_s(measured.units, "baseline"),
            peak_mem_bytes=max(record.peak_mem_bytes for record in measured.records),
        )
        if measured.decision.kind == "futile" and measured.decision.gain_excluded:
            return found.model_copy(update={"verdict": "no_gain"})
        if measured.decision.kind != "promote":
            return found
        verdict = self.final_verdict(measured)
        return found.model_copy(update={"verdict": verdict.kind, "judged": verdict})

    def measure(self) -> Measured:
        """Run units until a look decides, or until a pair is refused or cannot run."""
        records: list[PairRecord] = []
        units: list[Unit] = []
        decision: Decision | None = None
        for look in self._effort.protocol.looks:
            while len(units) < look:
                if self._is_late(len(units)):
                    late = decision or Decision(kind="not_resolved", n_units=len(units))
                    return Measured(units=tuple(units), records=tuple(records), decision=late)
                refused = self._unit(len(units), units, records)
                if refused is not None:
                    return Measured(units=tuple(units), records=tuple(records), refused=refused)
            decision = decide(
                [u.log_ratio() for u in units],
                self._noise,
                self._effort.protocol,
                slots=[u.slot_log_ratio() for u in units],
            )
            if decision.kind != "continue":
                break
        return Measured(units=tuple(units), records=tuple(records), decision=decision)

    def _is_late(self, number: int) -> bool:
        deadline_s = self._effort.deadline_s
        if deadline_s is None:
            return False
        return self._context.once(
            f"{self._key}/{number}/late", bool, lambda: self._context.now_s() > deadline_s
        )

    def final_verdict(self, measured: Measured) -> Verdict:
        """The judge on all pairs together and on endurance.

        A run that took too long may have met another load on the machine: then two more are made,
        each beside one of the baseline, and both must pass.
        """
        first = self._verdict_with_endurance(measured, 0)
        assert self._pairing.judged is not None
        if endurance.clause(self._pairing.judged).kind == "accepted":
            return first
        exceeded = endurance.exceeds_claim(self._pairing.judged)
        second = self._verdict_with_endurance(measured, 1)
        if not exceeded or second.kind != "accepted":
            return second
        return self._verdict_with_endurance(measured, 2)

    def _verdict_with_endurance(self, measured: Measured, attempt: int) -> Verdict:
        records = measured.records
        claim = _claim(measured)
        enduring = Enduring(self._context, self._pairing, records, self._key)
        runs = [
            enduring.run(claim, self._effort.endurance_s, number) for number in range(attempt + 1)
        ]
        audited = [r for r in records if r.audits] or list(records)
        audits = tuple(a for r in (*records, *runs) for a in r.audits)
        needs: tuple[Need, ...] = ("audit", "turns", "endurance", "locked_files")
        evidence = self._pairing.evidence(audited[-1], needs=needs, known=audits)
        self._pairing.judged = evidence.model_copy(
            update={
                "audits": audits,
                "turns": tuple(t for r in records if r.pair for t in r.pair.turns),
                "candidate_step_time_s": claim.candidate_s,
                "endurance": enduring.expected(runs[-1], claim),
            }
        )
        return judge(self._pairing.judged)

    @property
    def judged(self) -> JudgedEvidence | None:
        """What the judge was last asked about in this process."""
        return self._pairing.judged

    def _unit(self, number: int, units: list[Unit], records: list[PairRecord]) -> Verdict | None:
        """Run one unit. Returns a verdict where the unit itself ends the confirmation."""
        sides: tuple[Side, Side] = ("baseline", "candidate")
        audited = self._pairing.draw(number, "audited").randrange(2)
        pairs: list[ProcessPair] = []
        for position, first in enumerate(sides):
            self._progress(number, first)
            wanted = position == audited or self._job.drops_out
            audit = wanted and number < self._effort.audits
            record = self._context.once(
                f"{self._key}/{number}/{first}",
                PairRecord,
                lambda first=first, audit=audit: self._pairing.pair(
                    number, first, audit, tuple(a for r in records for a in r.audits)
                ),
            )
            records.append(record)
            if record.pair is None:
                return _unrunnable(record, self._pairing.evidence(record, needs=()))
            if record.verdict is not None and record.verdict.kind != "accepted":
                return record.verdict
            pairs.append(record.pair)
        units.append(Unit(pairs=(pairs[0], pairs[1])))
        return None

    def _progress(self, number: int, first: Side) -> None:
        self._context.check()
        message = f"Confirming {self._frozen.name}: unit {number + 1}, {first} started first"
        self._context.emit_once(
            f"{self._key}/{number}/{first}/progress",
            Progressed(
                stage="confirmation",
                message=message,
                done=number,
                total=self._effort.protocol.looks[-1],
            ),
        )


def _claim(measured: Measured) -> Claim:
    units = measured.units
    median_s = median_step_s(units, "baseline")
    turns = turn_means_s(units, "baseline")
    costs = [r.baseline_cpu_s_per_step for r in measured.records if r.baseline_cpu_s_per_step]
    return Claim(
        candidate_s=median_step_s(units, "candidate"),
        baseline_s=median_s,
        baseline_cpu_s=max(costs, default=0.0),
        skew=max(1.0, mean_step_s(units, "baseline") / median_s),
        unevenness_frac=max(turns) / min(turns) - 1,
    )


def _unrunnable(record: PairRecord, evidence: JudgedEvidence) -> Verdict:
    """The judge on a pair that was none: what the candidate left may say why."""
    outcome = record.outcome
    admitted = ended_early.clause(evidence)
    if admitted.kind == "rejected":
        return admitted
    if isinstance(outcome, Rejected):
        return Verdict(kind="rejected", violations=outcome.violations)
    why = outcome.kind if outcome else "no reason was left"
    return Verdict(kind="inconclusive", missing=(f"The candidate did not run in a pair: {why}.",))


def _speedup(decision: Decision) -> Speedup | None:
    found = decision.speedup
    if found is None:
        return None
    return Speedup(ratio=found.ratio, low=found.low, high=found.high, level=found.level)
