"""Runs of two or three steps before a trial: does it run at all, and does it fit.

A smoke run is made on a smaller job (`patches.shrink`), so that it takes seconds where the real
job takes minutes. Where the smaller job fails, the baseline made as small says whether that is
the candidate's doing; if the baseline fails too, the real job runs instead, and no candidate of
the campaign is made smaller again.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from infrarsi.edits import diff_texts
from infrarsi.frozen import Frozen
from infrarsi.knobs import Candidate
from infrarsi.launch import Launch
from infrarsi.patches import Shrunk, overlay, shrink
from infrarsi.trial import Completed, Outcome, ShortRun
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.candidates import Built, built
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.running import outcome_of

SMOKE_STEPS = 3
PROBE_STEPS = 2
"""The second step has the optimizer's state."""

LONGEST_S = 180.0
"""A smoke run that takes longer says nothing (it may compile), and the trial goes on."""


class Kept(Frozen):
    """A short run as journalled, or that none could be made."""

    short_run: ShortRun | None


class ShortRuns:
    """The short runs of one campaign, each journalled under its key."""

    def __init__(self, context: Context, job: Job) -> None:
        """Bind both; nothing runs yet."""
        self._context = context
        self._job = job
        self._shrinks: bool | None = None

    def smoke(self, key: str, candidate: Candidate) -> ShortRun | None:
        """Whether it runs at all; None where it cannot even be built or breaks a static rule."""
        return self._run(key, candidate, lambda made: self._smoke(key, candidate, made))

    def memory_probe(self, key: str, candidate: Candidate) -> ShortRun | None:
        """The real job's peak within two steps; None as for `smoke`."""

        def probe(made: Built) -> ShortRun:
            outcome = self._execute(key, made.tree, made.launch, PROBE_STEPS)
            return ShortRun(kind="memory_probe", candidate=candidate, outcome=outcome)

        return self._run(key, candidate, probe)

    def _run(
        self, key: str, candidate: Candidate, run: Callable[[Built], ShortRun]
    ) -> ShortRun | None:
        def timed() -> Kept:
            started_s = self._context.now_s()
            with built(self._context, self._job, candidate, key) as made:
                found = run(made) if isinstance(made, Built) else None
            took_s = self._context.now_s() - started_s
            return Kept(short_run=found and found.model_copy(update={"wall_s": took_s}))

        return self._context.once(key, Kept, timed).short_run

    def _smoke(self, key: str, candidate: Candidate, made: Built) -> ShortRun:
        small = self._made_smaller(made) if self._shrinks is not False else None
        if small is not None:
            found = ShortRun(
                kind="smoke",
                candidate=candidate,
                outcome=self._execute_small(key, made, small),
                smaller=small.smaller,
            )
            if not found.failed or self._baseline_shrinks():
                return found
        outcome = self._execute(key, made.tree, made.launch, SMOKE_STEPS)
        return ShortRun(kind="smoke", candidate=candidate, outcome=outcome)

    def _baseline_shrinks(self) -> bool:
        """Whether the smaller baseline runs; asked once a campaign, where a smaller job failed."""
        if self._shrinks is None:
            self._shrinks = self._context.once("smoke/baseline", bool, self._run_small_baseline)
        return self._shrinks

    def _run_small_baseline(self) -> bool:
        job = self._job
        made = Built(edits=(), tree=job.tree, launch=job.launch, reading=job.reading)
        small = self._made_smaller(made)
        if small is None:
            return False
        return isinstance(self._execute_small("smoke/baseline", made, small), Completed)

    def _made_smaller(self, made: Built) -> Shrunk | None:
        return shrink(made.reading, self._context.trees.sources(made.tree), made.launch)

    def _execute_small(self, key: str, made: Built, small: Shrunk) -> Outcome:
        trees, base = self._context.trees, self._job.sources
        texts = overlay(trees.sources(made.tree), small.edits)
        edits = tuple(
            edit
            for file in sorted({edit.file for edit in (*made.edits, *small.edits)})
            for edit in diff_texts(file, base.text(file) or "", texts.text(file) or "")
        )
        tree = trees.candidate(self._job.commit, edits, f"{key}/smaller")
        try:
            return self._execute(key, tree, small.launch, SMOKE_STEPS)
        finally:
            trees.discard(tree)

    def _execute(self, key: str, tree: Path, launch: Launch, n_steps: int) -> Outcome:
        spec = self._job.candidate_spec("timed", key, tree, launch)
        spec = replace(
            spec,
            warmup_steps=1,
            window_steps=n_steps - 1,
            timeout_s=min(spec.timeout_s, LONGEST_S),
        )
        result = self._context.runs.execute(spec)
        self._context.runs.discard(result)
        return outcome_of(result, spec)
