"""One process pair of a frozen candidate and the baseline, its audit, and the judge on both.

The audited step is taken again by the baseline's own run from the candidate's state; see
`redoing`.
"""

import hashlib
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infrarsi.contract.contract import Protocol
from infrarsi.frozen import Frozen
from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.evidence import JudgedEvidence, Need
from infrarsi.judge.judging import judge
from infrarsi.judge.verdict import Verdict
from infrarsi.launch import Launch
from infrarsi.pair import ProcessPair, Unit
from infrarsi.run import Mode
from infrarsi.trial import Outcome
from infrarsi.wire.probe import RankEvidence
from infrarsi.wire.results import Calibration
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.drawing import draw
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.procedures.redoing import Audited, Redoing
from infrarsi_runner.running import PairResult, RunResult, RunSpec, Side, outcome_of


@dataclass(frozen=True)
class FrozenCandidate:
    """A frozen candidate: its own worktree and launch."""

    name: str
    tree: Path
    launch: Launch


class Effort(Frozen):
    """How long to look: the protocol of the contract, or a short one.

    No unit is begun after `deadline_s`, by the context's clock. A turn lasts at least
    `shortest_turn_s`, and no run longer than `longest_run_s` or the contract's limit.
    """

    protocol: Protocol
    audits: int = 100
    endurance_s: float = 8.0
    deadline_s: float | None = None
    shortest_turn_s: float = 0.0
    longest_run_s: float | None = None


class PairRecord(Frozen):
    """One process pair as journalled. `verdict` is the judge's on this pair alone.

    `startup_*` are the baseline's.

    `cpu_s_per_step` is the candidate's process tree over all its steps, start-up apart, and
    `baseline_cpu_s_per_step` the baseline's.
    """

    pair: ProcessPair | None
    outcome: Outcome | None = None
    evidence: tuple[RankEvidence, ...] = ()
    baseline_evidence: tuple[RankEvidence, ...] = ()
    audits: tuple[AuditComparison, ...] = ()
    verdict: Verdict | None = None
    locked_after: dict[str, str] = {}
    startup_wall_s: float = 0.0
    startup_cpu_s: float = 0.0
    candidate_startup_wall_s: float = 0.0
    candidate_startup_cpu_s: float = 0.0
    cpu_s_per_step: float | None = None
    baseline_cpu_s_per_step: float | None = None
    peak_mem_bytes: int = 0


class Pairing:
    """Pairs one frozen candidate with the job's baseline."""

    def __init__(
        self,
        context: Context,
        job: Job,
        frozen: FrozenCandidate,
        calibration: Calibration | None,
        effort: Effort,
    ) -> None:
        """Bind what every pair needs; nothing runs yet."""
        self._context = context
        self._job = job
        self._frozen = frozen
        self._calibration = calibration
        self._effort = effort
        self.redoing = Redoing(context, job)
        self.judged: JudgedEvidence | None = None

    def pair(
        self, number: int, first: Side, audit: bool, known: tuple[AuditComparison, ...] = ()
    ) -> PairRecord:
        """Run and judge the pair of a unit in which `first` starts first.

        `known` are audits of earlier pairs: their reference arm serves for this one too.
        """
        rng = self.draw(number, first)
        seed = rng.randrange(1, 1_000_000)
        baseline = replace(self.baseline_spec("baseline"), seed=seed)
        candidate = replace(self.candidate_spec("timed", "candidate"), seed=seed)
        result = self._context.runs.pair(
            baseline,
            candidate,
            first=first,
            turn_pairs=self._effort.protocol.turn_pairs,
            steps_per_turn=self._effort.protocol.steps_per_turn,
            shortest_turn_s=self._effort.shortest_turn_s,
            audit=audit,
            natural=self._job.drops_out,
            rng=rng,
        )
        if result.pair is None:
            return PairRecord(
                pair=None,
                outcome=_why_no_pair(result, baseline, candidate),
                evidence=result.candidate.evidence if result.failed == "candidate" else (),
            )
        record = self._record(result, baseline, audit, known)
        self._context.runs.discard(result.baseline)
        self._context.runs.discard(result.candidate)
        return record

    def _record(
        self,
        result: PairResult,
        baseline: RunSpec,
        audit: bool,
        known: tuple[AuditComparison, ...],
    ) -> PairRecord:
        record = PairRecord(
            pair=result.pair,
            evidence=result.candidate.evidence,
            baseline_evidence=result.baseline.evidence,
            locked_after=self._locked_after(result),
            startup_wall_s=result.baseline.startup_wall_s,
            startup_cpu_s=result.baseline.startup_cpu_s,
            candidate_startup_wall_s=result.candidate.startup_wall_s,
            candidate_startup_cpu_s=result.candidate.startup_cpu_s,
            cpu_s_per_step=_cpu_s_per_step(result.candidate),
            baseline_cpu_s_per_step=_cpu_s_per_step(result.baseline),
            peak_mem_bytes=max(result.candidate.observation.peak_rss_bytes, default=0),
        )
        needs: tuple[Need, ...] = ("turns", "locked_files")
        if audit:
            record = record.model_copy(update={"audits": self._redo(result, baseline, known)})
            needs = ("audit", *needs)
        self.judged = self.evidence(record, needs=needs, known=known)
        verdict = judge(self.judged)
        return record.model_copy(update={"verdict": verdict})

    def _locked_after(self, result: PairResult) -> dict[str, str]:
        """Hashes of the locked files as the candidate brought and left them."""
        hashes = locked_hashes(self._frozen.tree, self._job.lock.locked_files)
        changed = dict.fromkeys(result.candidate.changed_files, "changed while running")
        return {name: changed.get(name, digest) for name, digest in hashes.items()}

    def _redo(
        self, result: PairResult, baseline: RunSpec, known: tuple[AuditComparison, ...]
    ) -> tuple[AuditComparison, ...]:
        audited = Audited(
            candidate=result.candidate,
            baseline=baseline,
            shapes=shapes_of(result.baseline.evidence),
            steps=result.audited_steps,
            natural_steps=result.natural_steps,
        )
        return self.redoing.compare(audited, known)

    def evidence(
        self,
        record: PairRecord,
        needs: tuple[Need, ...],
        known: tuple[AuditComparison, ...] = (),
    ) -> JudgedEvidence:
        """What the judge may look at of one pair; `known` are audits of earlier ones."""
        return JudgedEvidence(
            lock=self._job.lock,
            candidate=record.evidence,
            baseline=record.baseline_evidence,
            audits=record.audits,
            turns=record.pair.turns if record.pair else (),
            locked_before=self._job.lock.locked_files,
            locked_after=record.locked_after,
            calibration=self._calibration,
            candidate_step_time_s=(
                median_step_s([record.pair], "candidate") if record.pair else None
            ),
            n_dropouts=max((c.n_dropouts for c in (*record.audits, *known)), default=0),
            needs=needs,
        )

    def candidate_spec(self, mode: Mode, label: str) -> RunSpec:
        """A run of the candidate."""
        spec = self._job.candidate_spec(mode, label, self._frozen.tree, self._frozen.launch)
        return self._limited(spec)

    def baseline_spec(self, label: str) -> RunSpec:
        """A timed run of the baseline."""
        return self._limited(self._job.spec("timed", label))

    def _limited(self, spec: RunSpec) -> RunSpec:
        longest_s = self._effort.longest_run_s or spec.timeout_s
        return replace(spec, timeout_s=min(spec.timeout_s, longest_s))

    def draw(self, *names: object) -> random.Random:
        """A generator for the thing of those names of this candidate."""
        return draw(self._context, self._frozen.name, *names)


def median_step_s(holders: Sequence[Unit | ProcessPair], side: Side) -> float:
    """Median of one side's timed steps over all pairs, s by the outside clock."""
    return statistics.median(_steps_s(holders, side))


def mean_step_s(holders: Sequence[Unit | ProcessPair], side: Side) -> float:
    """Mean of the same."""
    return statistics.fmean(_steps_s(holders, side))


def turn_means_s(holders: Sequence[Unit | ProcessPair], side: Side) -> list[float]:
    """The mean step of each of its turns."""
    pairs = [p for h in holders for p in (h.pairs if isinstance(h, Unit) else (h,))]
    return [statistics.fmean(t.steps_s) for p in pairs for t in p.turns if t.side == side]


def _steps_s(holders: Sequence[Unit | ProcessPair], side: Side) -> list[float]:
    pairs = [p for h in holders for p in (h.pairs if isinstance(h, Unit) else (h,))]
    return [s for p in pairs for turn in p.turns if turn.side == side for s in turn.steps_s]


def locked_hashes(tree: Path, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of those files of a tree as they are on disk; a file that is gone is left out."""
    return {
        name: hashlib.sha256((tree / name).read_bytes()).hexdigest()
        for name in names
        if (tree / name).is_file()
    }


def shapes_of(evidence: Sequence[RankEvidence]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The parameters of a side as the first rank that knows them names them."""
    return next((rank.parameter_shapes for rank in evidence if rank.parameter_shapes), ())


def _cpu_s_per_step(run: RunResult) -> float | None:
    last = max((step.index for step in run.observation.steps), default=0)
    return (run.observation.cpu_s - run.startup_cpu_s) / last if last else None


def _why_no_pair(result: PairResult, baseline: RunSpec, candidate: RunSpec) -> Outcome:
    if result.failed == "baseline":
        return outcome_of(result.baseline, baseline)
    return outcome_of(result.candidate, candidate)
