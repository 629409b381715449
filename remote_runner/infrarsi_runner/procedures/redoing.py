"""The audit's second half: the baseline's own run takes the candidate's audited steps again.

Where the candidate lays its parameters out otherwise, its files are laid out as the baseline's
first; of several possible layouts the one that reproduces the update counts. A candidate in 16
bit is also held against the reference arm: the baseline under autocast, or where that fails the
baseline from rounded weights. Where the job drops out, one step is redone with
dropout as it is and once more without, which tells how much noise each side's dropout makes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.judge.audit_numbers import compare
from infrarsi.judge.layout import Layout, infer_layouts
from infrarsi.wire.probe import RankEvidence
from infrarsi_runner.context import Context
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.relayout import LayoutRefused, relayout
from infrarsi_runner.running import RunResult, RunSpec

_REPRODUCED = 0.03
"""A layout under which gradients differ by less is the right one: a wrong one is off by about 1."""


@dataclass(frozen=True)
class Audited:
    """What a candidate left to be redone: its steps, and the baseline's run with its seed."""

    candidate: RunResult
    baseline: RunSpec
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    steps: tuple[int, ...]
    natural_steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Redone:
    """What came of it: every step on every rank, and what the baseline's redo told of itself."""

    comparisons: tuple[AuditComparison, ...]
    evidence: tuple[RankEvidence, ...]


@dataclass(frozen=True)
class _Files:
    folder: str
    evidence: tuple[RankEvidence, ...]
    is_relaid: bool = False


class Redoing:
    """Redoes audited steps of one job's candidates."""

    def __init__(self, context: Context, job: Job) -> None:
        """Bind what every redo needs."""
        self._context = context
        self._job = job

    def compare(
        self, audited: Audited, known: tuple[AuditComparison, ...] = ()
    ) -> tuple[AuditComparison, ...]:
        """Every audited step on every rank; see `redo`."""
        return self.redo(audited, known).comparisons

    def redo(self, audited: Audited, known: tuple[AuditComparison, ...] = ()) -> Redone:
        """Take every audited step again, under each layout that may be the right one.

        `known` are earlier comparisons of the same candidate: their reference arm serves again.
        """
        best = Redone((), ())
        for files in self._files(audited):
            try:
                found = self._under(files, audited, known)
            finally:
                if files.is_relaid:
                    remove_folder(Path(files.folder))
            if not best.comparisons or _worst(found.comparisons) < _worst(best.comparisons):
                best = found
            if _worst(best.comparisons) <= _REPRODUCED:
                break
        return best

    def _files(self, audited: Audited) -> Iterator[_Files]:
        """The candidate's files in each layout that may be the baseline's."""
        own = _Files(audited.candidate.evidence_dir, audited.candidate.evidence)
        layouts = _layouts(audited)
        if not layouts or layouts[0].is_identity:
            yield own
            return
        tried = False
        for number, layout in enumerate(layouts):
            into = Path(f"{audited.candidate.evidence_dir}-layout{number}")
            try:
                laid = [
                    relayout(rank, Path(own.folder), into, layout, dict(audited.shapes), _open)
                    for rank in own.evidence
                ]
            except (LayoutRefused, OSError, ValueError):
                remove_folder(into)
                continue
            tried = True
            yield _Files(str(into), tuple(laid), is_relaid=True)
        if not tried:
            yield own

    def _under(self, files: _Files, audited: Audited, known: tuple[AuditComparison, ...]) -> Redone:
        spec = replace(
            audited.baseline,
            mode="redo",
            label="redo",
            redo_from=Path(files.folder),
            redo_steps=(*audited.steps, *audited.natural_steps),
            natural_steps=audited.natural_steps,
        )
        redo = self._context.runs.execute(spec)
        n_dropouts = max((rank.n_dropouts for rank in redo.evidence), default=0)
        steps = audited.steps if n_dropouts else spec.redo_steps
        found = _compare(files, redo, steps)
        if n_dropouts:
            found = self._with_dropout(files, redo, spec, found, n_dropouts)
        if self._wants_reference(files.evidence):
            found = self._with_reference(spec, redo, found, known)
        self._context.runs.discard(redo)
        if files.is_relaid:
            found = tuple(c.model_copy(update={"is_relaid": True}) for c in found)
        return Redone(found, redo.evidence)

    def _with_dropout(
        self,
        files: _Files,
        redo: RunResult,
        spec: RunSpec,
        found: tuple[AuditComparison, ...],
        n_dropouts: int,
    ) -> tuple[AuditComparison, ...]:
        """Beside each comparison, how far dropout moves either side's gradient in one step."""
        natural = spec.natural_steps
        ours: dict[int, float | None] = {}
        theirs: dict[int, float | None] = {}
        if natural:
            still = replace(spec, redo_steps=natural, natural_steps=(), label="still")
            arm = self._context.runs.execute(still)
            ours = {c.rank: c.grad_rel_err for c in _compare(files, arm, natural)}
            drawn = _Files(redo.evidence_dir, redo.evidence)
            theirs = {c.rank: c.grad_rel_err for c in _compare(drawn, arm, natural)}
            self._context.runs.discard(arm)
        dropped = [
            {rank.rank: rank.dropped_elements for rank in side}
            for side in (files.evidence, redo.evidence)
        ]
        return tuple(
            c.model_copy(
                update={
                    "n_dropouts": n_dropouts,
                    "dropped_candidate": dropped[0].get(c.rank),
                    "dropped_baseline": dropped[1].get(c.rank),
                    "dropout_noise_candidate": ours.get(c.rank),
                    "dropout_noise_baseline": theirs.get(c.rank),
                }
            )
            for c in found
        )

    def _with_reference(
        self,
        spec: RunSpec,
        redo: RunResult,
        found: tuple[AuditComparison, ...],
        known: tuple[AuditComparison, ...],
    ) -> tuple[AuditComparison, ...]:
        arm = {c.rank: c for c in known if c.reference_grad_rel_err is not None}
        if not arm:
            arm = self._reference(replace(spec, autocast="bfloat16"), redo)
        if not arm:
            arm = self._reference(replace(spec, rounds_weights=True), redo)
        return tuple(c.judged_by(arm[c.rank]) if c.rank in arm else c for c in found)

    def _reference(self, spec: RunSpec, redo: RunResult) -> dict[int, AuditComparison]:
        """By rank, how far an arm in 16 bit strays from the redo; empty where it cannot run.

        Code that was never run under autocast may mix types there and fail.
        """
        still = tuple(step for step in spec.redo_steps if step not in spec.natural_steps)
        spec = replace(spec, redo_steps=still, natural_steps=(), label="reference")
        result = self._context.runs.execute(spec)
        strayed = _compare(_Files(result.evidence_dir, result.evidence), redo, still)
        self._context.runs.discard(result)
        return {c.rank: c.as_reference() for c in strayed if c.grad_rel_err is not None}

    def _wants_reference(self, evidence: tuple[RankEvidence, ...]) -> bool:
        """A 16-bit candidate of a job in full precision."""
        seen = any(step.autocast for rank in evidence for step in rank.steps)
        return seen and self._job.lock.contract.precision == "fp32"


def _layouts(audited: Audited) -> tuple[Layout, ...]:
    ours = next((r.parameter_shapes for r in audited.candidate.evidence if r.parameter_shapes), ())
    if not ours or not audited.shapes:
        return ()
    return infer_layouts(ours, audited.shapes)


def _worst(comparisons: tuple[AuditComparison, ...]) -> float:
    errors = [c.grad_rel_err for c in comparisons if c.unreadable is None]
    known = [e for e in errors if e is not None]
    return max(known) if known and len(known) == len(comparisons) else float("inf")


def _compare(
    ours: _Files, theirs: RunResult, steps: tuple[int, ...]
) -> tuple[AuditComparison, ...]:
    return tuple(
        comparison
        for step in steps
        for comparison in compare(
            ours.folder, ours.evidence, theirs.evidence_dir, theirs.evidence, step, _open
        )
    )


def _open(path: str) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.memmap(path, dtype=np.uint8, mode="r")
