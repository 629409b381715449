"""Leave-out fits of the estimate, by source and by model of a source."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from estimate_fit import (
    SOURCE,
    Design,
    Settings,
    coefficients,
    design,
    fit,
    source_weights,
    spread_of,
)
from estimate_rows import Run

from infrarsi.estimate.calibration import Table, read_table
from infrarsi.estimate.estimating import peak_memory, stages, step_time, told_basis
from infrarsi.estimate.parts import Parts, time_parts
from infrarsi.estimate.physics import physics
from infrarsi.estimate.spread_features import memory_spread_features, time_spread_features

LARGE, SPREAD_LARGE, MOST_OF_A_SOURCE = 40, 6, 300
_NO_SPREAD = {"scale": {"one": 0.0}, "levels": [0.05, 0.95], "points": [-1.0, 1.0]}


@dataclass(frozen=True)
class Kind:
    """What is fitted: time or memory.

    A source left out errs more than the spread of the others says, by about `stretch`.
    """

    name: str
    settings: Settings
    stretch: float


def _time_prior(term: str, name: str) -> float:
    if name.startswith(SOURCE):
        return 0.1
    if not term:
        return 0.12
    if name.startswith("piped="):
        return 3.0
    if name == "ranks":
        return 1.0
    if term.endswith("network"):
        return 1.2 if name == "one" else 0.6
    return 0.7 if name == "one" else 0.1


def _memory_prior(term: str, name: str) -> float:
    if name.startswith(SOURCE):
        return 0.1
    if term in {"parameters", "gradients", "optimizer_state"}:
        return 0.05
    if not term:
        return 0.1
    if term == "context" or (term == "allocator" and name == "one"):
        return 1.0
    return 0.04 if name == "one" else 0.3 if name.startswith("family=") else 0.1


TIME = Kind("time", Settings(_time_prior, noise=0.15), stretch=1.1)
MEMORY = Kind("memory", Settings(_memory_prior, noise=0.4), stretch=1.05)


class Fitting:
    """The runs of one kind, their matrices, and fits that leave some of them out."""

    def __init__(self, kind: Kind, runs: Sequence[Run], seed: int = 0) -> None:
        """Build the matrices and fit all runs once, as the start of the others."""
        self.kind, self.runs = kind, list(runs)
        self.sources = [run.source for run in self.runs]
        self.log_observed = np.log([_observed(kind, run) for run in self.runs])
        self.made: Design = design([_parts(kind, run) for run in self.runs], self.sources)
        self.weights = source_weights(self.sources)
        self.learns = self._thinned(seed)
        self.whole = self._fit(np.ones(len(self.runs), bool), None)
        table = read_table(self.table() | {"spread": _NO_SPREAD})
        self.spread_rows = [spread_features(kind, run, table) for run in self.runs]

    def table(self, without: np.ndarray | None = None) -> dict:
        """Coefficients fitted to the runs that are not left out."""
        kept = np.ones(len(self.runs), bool) if without is None else ~without
        theta = self.whole if without is None else self._fit(kept, self.whole)
        return coefficients(self.made, theta)

    def left_out(self, groups: Sequence[str]) -> tuple[np.ndarray, dict[str, dict]]:
        """Log errors of every run with its group left out, and each group's coefficients."""
        errors, found = np.zeros(len(self.runs)), {}
        names = np.array(groups)
        for group in sorted(set(groups)):
            out = names == group
            found[group] = self.table(out)
            table = read_table(found[group] | {"spread": _NO_SPREAD})
            for i in np.flatnonzero(out):
                log = np.log(estimated(self.kind, self.runs[i], table))
                errors[i] = self.log_observed[i] - log
        return errors, found

    def groups(self) -> list[str]:
        """Large split groups alone, the small ones of all sources dealt into a few."""
        counts: dict[str, int] = {}
        for run in self.runs:
            counts[run.group] = counts.get(run.group, 0) + 1
        return [
            run.group
            if counts[run.group] > LARGE
            else f"dealt {zlib.crc32(run.group.encode()) % SPREAD_LARGE}"
            for run in self.runs
        ]

    def spread(self, errors: Sequence[np.ndarray], without: np.ndarray | None = None) -> dict:
        """The spread of one or more sets of left-out errors."""
        kept = np.ones(len(self.runs), bool) if without is None else ~without
        rows = [row for row, keep in zip(self.spread_rows, kept, strict=True) if keep]
        return spread_of(
            np.concatenate([e[kept] for e in errors]),
            rows * len(errors),
            np.concatenate([self.weights[kept]] * len(errors)),
            self.kind.stretch,
        )

    def _thinned(self, seed: int) -> np.ndarray:
        rng, learns = np.random.default_rng(seed), np.ones(len(self.runs), bool)
        for source in sorted(set(self.sources)):
            rows = np.flatnonzero(np.array(self.sources) == source)
            learns[rng.permutation(rows)[MOST_OF_A_SOURCE:]] = False
        return learns

    def _fit(self, kept: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        chosen = kept & self.learns
        sources = [s for s, c in zip(self.sources, chosen, strict=True) if c]
        how = replace(self.kind.settings, start=start)
        return fit(self.made.rows(chosen), self.log_observed[chosen], source_weights(sources), how)


def estimated(kind: Kind, run: Run, table: Table) -> float:
    """What the shipped code estimates with that table, s or bytes, in the run's own basis."""
    if kind.name == "time":
        return step_time(run.job, physics(run.job), table).value
    return peak_memory(told_basis(run.job, run.basis), table).peak.value


def spread_features(kind: Kind, run: Run, table: Table) -> dict[str, float]:
    """The features that the shipped code takes for the interval."""
    if kind.name == "memory":
        return memory_spread_features(run.job)
    return time_spread_features(run.job, table.corrected(time_parts(run.job, physics(run.job))))


def observed_runs(kind: Kind, runs: Sequence[Run]) -> list[Run]:
    """The runs that observed it."""
    return [run for run in runs if _observed(kind, run) is not None]


def _observed(kind: Kind, run: Run) -> float | None:
    if kind.name == "time":
        return run.step_s
    return None if run.peak_gib is None else run.peak_gib * (1 << 30)


def _parts(kind: Kind, run: Run) -> Parts:
    if kind.name == "time":
        return time_parts(run.job, physics(run.job))
    asked = stages(told_basis(run.job, run.basis))
    return max(asked, key=lambda parts: sum(part.size for part in parts.parts))
