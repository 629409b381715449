"""Confirmation: a frozen candidate against the baseline on fresh pairs; the only way to promote.

Each unit is two process pairs, the baseline started first in one and the candidate in the other,
on a seed neither side has seen. One pair of each unit is audited at a step drawn after launch.
"""

import hashlib
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.frozen import Frozen
from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.audit_numbers import compare
from infrarsi.judge.evidence import EnduranceRun, JudgedEvidence, Need
from infrarsi.judge.judging import judge
from infrarsi.judge.verdict import Verdict
from infrarsi.launch import Launch
from infrarsi.pair import ProcessPair, Unit
from infrarsi.run import RunObservation
from infrarsi.stats.confirmation import Decision, decide
from infrarsi.stats.noise import fit_noise
from infrarsi.trial import Outcome, Rejected
from infrarsi.wire.messages import Progressed
from infrarsi.wire.probe import RankEvidence
from infrarsi.wire.results import Calibration, Speedup
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.drawing import draw
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.running import RunResult, RunSpec, outcome_of
from infrarsi_runner.turns import PairResult

Side = Literal["baseline", "candidate"]
ENDURANCE_TRIES = 3
ENDURANCE_CODES = ("T303", "T312")
STARTUP_SLACK = 1.5


@dataclass(frozen=True)
class FrozenCandidate:
    """A frozen candidate: its own worktree and launch."""

    name: str
    tree: Path
    launch: Launch


class PairRecord(Frozen):
    """One process pair as journalled. `verdict` is the judge's on this pair alone."""

    pair: ProcessPair | None
    outcome: Outcome | None = None
    evidence: tuple[RankEvidence, ...] = ()
    baseline_evidence: tuple[RankEvidence, ...] = ()
    audits: tuple[AuditComparison, ...] = ()
    verdict: Verdict | None = None
    locked_after: dict[str, str] = {}
    startup_wall_s: float = 0.0
    startup_cpu_s: float = 0.0


class EnduranceRecord(Frozen):
    """The endurance run as journalled."""

    n_steps: int
    observation: RunObservation


class Confirmation(Frozen):
    """What came of it. `speedup` is the confirmation's own estimate, never a search reading."""

    verdict: Literal["accepted", "rejected", "inconclusive", "not_resolved", "no_gain"]
    judged: Verdict
    speedup: Speedup | None = None
    n_units: int = 0
    step_s_before: float = 0.0
    step_s_after: float = 0.0


class Effort(Frozen):
    """How long to look: the protocol of the contract, or a short one."""

    protocol: Protocol
    audits: int = 100
    endurance_s: float = 12.0


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
        self._context = context
        self._job = job
        self._frozen = frozen
        self._calibration = calibration
        self._effort = effort or Effort(protocol=job.lock.contract.protocol)
        self._key = f"confirm/{frozen.name}"

    def run(self) -> Confirmation:
        """Units up to each planned look, then endurance, then the judge on everything."""
        measured = self.measure()
        if measured.refused is not None:
            return Confirmation(verdict=measured.refused.kind, judged=measured.refused)
        assert measured.decision is not None
        found = Confirmation(
            verdict="not_resolved",
            judged=measured.records[-1].verdict or Verdict(kind="inconclusive"),
            speedup=_speedup(measured.decision),
            n_units=len(measured.units),
            step_s_before=_medians(measured.units, "baseline"),
            step_s_after=_medians(measured.units, "candidate"),
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
        control = self._calibration.aa_log_ratios if self._calibration else ()
        noise = fit_noise(control)
        decision: Decision | None = None
        for look in self._effort.protocol.looks:
            while len(units) < look:
                refused = self._unit(len(units), units, records)
                if refused is not None:
                    return Measured(units=tuple(units), records=tuple(records), refused=refused)
            decision = decide([u.log_ratio() for u in units], noise, self._effort.protocol)
            if decision.kind != "continue":
                break
        return Measured(units=tuple(units), records=tuple(records), decision=decision)

    def final_verdict(self, measured: Measured) -> Verdict:
        """The judge on all pairs together and on endurance; tried again where noise may be why."""
        verdict = self._verdict_with_endurance(measured, 0)
        for attempt in range(1, ENDURANCE_TRIES):
            if all(v.code not in ENDURANCE_CODES for v in verdict.violations):
                break
            verdict = self._verdict_with_endurance(measured, attempt)
        return verdict

    def _verdict_with_endurance(self, measured: Measured, attempt: int) -> Verdict:
        claimed_s = _medians(measured.units, "candidate")
        endurance = self._endurance(claimed_s, attempt)
        records = measured.records
        audited = [r for r in records if r.audits] or list(records)
        evidence = self._evidence(audited[-1], needs=("turns", "endurance", "locked_files"))
        return judge(
            evidence.model_copy(
                update={
                    "audits": tuple(a for r in records for a in r.audits),
                    "turns": tuple(t for r in records if r.pair for t in r.pair.turns),
                    "candidate_step_time_s": claimed_s,
                    "endurance": EnduranceRun(
                        n_steps=endurance.n_steps,
                        observation=endurance.observation,
                        claimed_step_time_s=claimed_s,
                        startup_wall_s=STARTUP_SLACK * max(r.startup_wall_s for r in records),
                        startup_cpu_s=STARTUP_SLACK * max(r.startup_cpu_s for r in records),
                    ),
                }
            )
        )

    def _unit(self, number: int, units: list[Unit], records: list[PairRecord]) -> Verdict | None:
        """Run one unit. Returns a verdict where the unit itself ends the confirmation."""
        sides: tuple[Side, Side] = ("baseline", "candidate")
        audited = self._draw(number, "audited").randrange(2)
        pairs: list[ProcessPair] = []
        for position, first in enumerate(sides):
            self._progress(number, first)
            audit = position == audited and number < self._effort.audits
            record = self._context.once(
                f"{self._key}/{number}/{first}",
                PairRecord,
                lambda first=first, audit=audit: self._pair(number, first, audit),
            )
            records.append(record)
            if record.pair is None:
                return _unrunnable(record)
            if record.verdict is not None and record.verdict.kind != "accepted":
                return record.verdict
            pairs.append(record.pair)
        units.append(Unit(pairs=(pairs[0], pairs[1])))
        return None

    def _endurance(self, claimed_s: float, attempt: int) -> EnduranceRecord:
        self._context.check()
        key = f"{self._key}/endurance/{attempt}"
        self._context.emit_once(
            f"{key}/progress",
            Progressed(stage="confirmation", message="Endurance: one long run, nobody watching"),
        )

        def compute() -> EnduranceRecord:
            rng = self._draw("endurance", attempt)
            shortest = max(20, round(self._effort.endurance_s / claimed_s))
            n_steps = rng.randrange(shortest, 2 * shortest)
            spec = replace(
                self._candidate_spec("endurance"), mode="endurance", window_steps=n_steps
            )
            result = self._context.runs.execute(spec)
            return EnduranceRecord(n_steps=n_steps, observation=result.observation)

        return self._context.once(key, EnduranceRecord, compute)

    def _pair(self, number: int, first: Side, audit: bool) -> PairRecord:
        rng = self._draw(number, first)
        seed = rng.randrange(1, 1_000_000)
        baseline = replace(self._job.spec("timed", "baseline"), seed=seed)
        candidate = replace(self._candidate_spec("candidate"), seed=seed)
        result = self._context.runs.pair(
            baseline,
            candidate,
            first=first,
            turn_pairs=self._effort.protocol.turn_pairs,
            steps_per_turn=self._effort.protocol.steps_per_turn,
            audit=audit,
            rng=rng,
        )
        if result.pair is None:
            return PairRecord(pair=None, outcome=_why_no_pair(result, baseline, candidate))
        record = self._record(result, baseline, audit)
        self._context.runs.discard(result.baseline)
        self._context.runs.discard(result.candidate)
        return record

    def _record(self, result: PairResult, baseline: RunSpec, audit: bool) -> PairRecord:
        record = PairRecord(
            pair=result.pair,
            evidence=result.candidate.evidence,
            baseline_evidence=result.baseline.evidence,
            locked_after=self._locked_after(result),
            startup_wall_s=result.baseline.startup_wall_s,
            startup_cpu_s=result.baseline.startup_cpu_s,
        )
        if not audit:
            return record
        audits = self._redo(result, baseline)
        record = record.model_copy(update={"audits": audits})
        verdict = judge(self._evidence(record, needs=("turns", "locked_files")))
        return record.model_copy(update={"verdict": verdict})

    def _locked_after(self, result: PairResult) -> dict[str, str]:
        """Hashes of the locked files as the candidate brought and left them."""
        hashes = locked_hashes(self._frozen.tree, self._job.lock.locked_files)
        changed = dict.fromkeys(result.candidate.changed_files, "changed while running")
        return {name: changed.get(name, digest) for name, digest in hashes.items()}

    def _redo(self, result: PairResult, baseline: RunSpec) -> tuple[AuditComparison, ...]:
        """The baseline's own run takes the audited steps with the candidate's state swapped in."""
        folder = Path(result.candidate.evidence_dir)
        spec = replace(
            baseline,
            mode="redo",
            label="redo",
            redo_from=folder,
            redo_steps=result.audited_steps,
            memory_budget_bytes=None,
        )
        redo = self._context.runs.execute(spec)
        comparisons = _compare(result.candidate, redo, result.audited_steps)
        if _under_autocast(result.candidate.evidence):
            reference = self._context.runs.execute(
                replace(spec, autocast="bfloat16", label="reference")
            )
            strayed = _compare(reference, redo, result.audited_steps)
            by_place = {(c.step, c.rank): c for c in strayed}
            comparisons = tuple(
                c.with_reference(by_place[c.step, c.rank]) if (c.step, c.rank) in by_place else c
                for c in comparisons
            )
            self._context.runs.discard(reference)
        self._context.runs.discard(redo)
        return comparisons

    def _evidence(self, record: PairRecord, needs: tuple[Need, ...]) -> JudgedEvidence:
        return JudgedEvidence(
            lock=self._job.lock,
            candidate=record.evidence,
            baseline=record.baseline_evidence,
            audits=record.audits,
            turns=record.pair.turns if record.pair else (),
            locked_before=self._job.lock.locked_files,
            locked_after=record.locked_after,
            calibration=self._calibration,
            candidate_step_time_s=(_medians([record.pair], "candidate") if record.pair else None),
            needs=needs,
        )

    def _candidate_spec(self, label: str) -> RunSpec:
        return self._job.candidate_spec("timed", label, self._frozen.tree, self._frozen.launch)

    def _draw(self, *names: object) -> random.Random:
        return draw(self._context, self._frozen.name, *names)

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


def _compare(
    ours: RunResult, theirs: RunResult, steps: tuple[int, ...]
) -> tuple[AuditComparison, ...]:
    return tuple(
        comparison
        for step in steps
        for comparison in compare(
            ours.evidence_dir, ours.evidence, theirs.evidence_dir, theirs.evidence, step, _open
        )
    )


def _under_autocast(evidence: tuple[RankEvidence, ...]) -> bool:
    return any(step.autocast for rank in evidence for step in rank.steps)


def _unrunnable(record: PairRecord) -> Verdict:
    outcome = record.outcome
    if isinstance(outcome, Rejected):
        return Verdict(kind="rejected", violations=outcome.violations)
    why = outcome.kind if outcome else "no reason was left"
    return Verdict(kind="inconclusive", missing=(f"The candidate did not run in a pair: {why}.",))


def _speedup(decision: Decision) -> Speedup | None:
    found = decision.speedup
    if found is None:
        return None
    return Speedup(ratio=found.ratio, low=found.low, high=found.high, level=found.level)


def locked_hashes(tree: Path, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of those files of a tree as they are on disk; a file that is gone is left out."""
    return {
        name: hashlib.sha256((tree / name).read_bytes()).hexdigest()
        for name in names
        if (tree / name).is_file()
    }


def _medians(holders: Sequence[Unit | ProcessPair], side: Side) -> float:
    pairs = [p for h in holders for p in (h.pairs if isinstance(h, Unit) else (h,))]
    steps = [s for p in pairs for turn in p.turns if turn.side == side for s in turn.steps_s]
    return statistics.median(steps)


def _why_no_pair(result: PairResult, baseline: RunSpec, candidate: RunSpec) -> Outcome:
    if result.failed == "baseline":
        return outcome_of(result.baseline, baseline)
    return outcome_of(result.candidate, candidate)


def _open(path: str) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.memmap(path, dtype=np.uint8, mode="r")
