"""Step time: log seconds as physics, additive effects and pairs; claims as a prior that is revised.

    log t = offset + b · (log t_phys - log t_phys of the start) + corrections · component shares
            + effects + pairs + residual
    effect of a claimed change = trust in its source · what it claims + its own error

with b ~ N(1, 0.25²); a correction says how far one component of the physics (computation, a link)
is off. Trust is a coefficient like any other: a part shared by all claims of a kind
and a part of each source, so that every trial with a claimed change revises how much the others
of that source and kind are believed. A source whose claims come out reversed gets a trust below
zero. Scales are chosen by marginal likelihood on a small grid; a reading that is far slower than
all the others expect (a slow node) counts for less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Column, Encoding, Floats, Rows
from infrarsi.models.gaussian import Points, Posterior, Prior, heavier_tails, points, spread
from infrarsi.models.physics import Physics, log_and_shares
from infrarsi.models.prediction import Effect, Prediction, Z

NOISE_SD = 0.015
"""Of the log of one reading, where nobody measured it."""

_KNOB_SD = 0.06
_PATCH_SD = 0.1
_UNEXPLAINED_SD = 0.2
_OFFSET_SD = 1.0
_BEFORE_ANY_SD = 0.7
_PHYSICS = (1.0, 0.25)
_CORRECTION_SD = 0.4
_TRUST = 0.7
_KIND_SD = 0.8
_SOURCE_SD = 0.35
_SCALES = (0.5, 1.0, 2.0)
_RESIDUALS = (0.01, 0.03)
_STRUCTURES = (0.05, 0.15, 0.4)
_PAIR_SD = 0.02
_GRID_N = 150
_FEW = 4
_SLOW = 3.0


@dataclass(frozen=True, kw_only=True)
class TimeClaim:
    """Expected natural log of before/after, and one standard deviation of it.

    `belief` is 0 to 1; a source whose changes were rejected loses it.
    """

    log_speedup: float
    sd: float
    source: str = ""
    kind: str = "setting"
    belief: float = 1.0


Claims = Mapping[tuple[str, Scalar], TimeClaim]


@dataclass(frozen=True, kw_only=True)
class Trust:
    """How much of what a source claims has held: 1 all of it, 0 nothing, below 0 the reverse."""

    source: str
    kind: str
    n: int
    mean: float
    sd: float


@dataclass(frozen=True)
class StepTimeModel:
    """Fitted on completed trials; `spread` scales every interval to how far past ones missed."""

    columns: "_Columns"
    posterior: Posterior
    spread: float

    def log_time(self, rows: Rows) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log step time (s), shapes (n,)."""
        mean, variance = self.posterior.predict(self.columns.points(rows))
        return mean, self.spread * np.sqrt(variance)

    def predict(self, rows: Rows) -> Prediction:
        """Step time, s, with a 90 % interval."""
        mean, sd = self.log_time(rows)
        return Prediction(value=np.exp(mean), low=np.exp(mean - Z * sd), high=np.exp(mean + Z * sd))

    def effects(self, changes: Sequence[tuple[str, Scalar]]) -> tuple[Effect, ...]:
        """What each change alone does to log step time (negative is faster), physics included."""
        encoding = self.columns.encoding
        rows = encoding.rows([{name: value} for name, value in changes])
        start = self.columns.points(encoding.rows([{}])).features
        means, sds = self.posterior.effects(self.columns.points(rows).features - start)
        return tuple(
            Effect(knob=k, value=v, mean=float(m), sd=float(s))
            for (k, v), m, s in zip(changes, means, sds, strict=True)
        )

    def trust(self) -> tuple[Trust, ...]:
        """The reliability of each source of claims as the trials so far have it."""
        if not self.columns.sources:
            return ()
        means, sds = self.posterior.effects(self.columns.trust_rows)
        seen = (np.abs(self.columns.claimed(self.posterior.x)) > 0).sum(axis=0)
        return tuple(
            Trust(source=source, kind=kind, n=int(n), mean=float(m), sd=float(s))
            for (source, kind), n, m, s in zip(self.columns.sources, seen, means, sds, strict=True)
        )


def fit_step_time(
    encoding: Encoding,
    settings: Sequence[Setting],
    step_times_s: Sequence[float],
    claims: Claims,
    physics: Physics | None = None,
    noise_sd: float = NOISE_SD,
    revise: bool = True,
) -> StepTimeModel:
    """Fit on completed trials; without any, the model is its prior (which needs `physics`).

    Args:
        encoding: the space and its baseline.
        settings: settings of the completed trials.
        step_times_s: their step times, s, positive.
        claims: by (knob, value).
        physics: analytic step times, where the job is known.
        noise_sd: standard deviation of one reading's log.
        revise: whether trust in claims may change with what trials show.
    """
    columns = _Columns(encoding, claims, physics, revise)
    rows = encoding.rows(settings)
    x = columns.points(rows)
    y = np.log(np.asarray(step_times_s, dtype=np.float64))
    noise = np.full(len(y), noise_sd**2)
    offset = _offset(columns, rows, y)
    prior = replace(columns.prior(*_MIDDLE), **offset)
    if len(y) >= _FEW:
        prior = _chosen(columns, offset, x, y, noise)
    posterior = Posterior(prior, x, y, noise)
    if len(y) >= _FEW:
        posterior = replace(posterior, noise_variance=_slow_nodes_heard_less(posterior))
        tailed = heavier_tails(posterior, prior, columns.may_surprise)
        posterior = replace(posterior, prior=tailed)
        posterior = replace(posterior, noise_variance=_slow_nodes_heard_less(posterior, noise))
    return StepTimeModel(columns, posterior, spread(posterior))


_MIDDLE = (1.0, 0.02, 0.2)


@dataclass(frozen=True)
class _Columns:
    """The encoding's columns, then physics, then one for each kind and source of claims."""

    encoding: Encoding
    claims: Claims
    physics: Physics | None
    revise: bool

    def points(self, rows: Rows) -> Points:
        own = self.encoding.one_hot(rows) @ self._claim_table
        if self.physics is None:
            return points(self.encoding, rows, own)
        log_total, shares = log_and_shares(self.physics.time_s(rows))
        start_total, start_shares = self._start
        ratio = (log_total - start_total)[:, None]
        return points(self.encoding, rows, ratio, shares - start_shares, own)

    def prior(self, scale: float, residual_sd: float, structure_sd: float) -> Prior:
        sds = [scale * self._sd(c) for c in self.encoding.columns]
        means = [0.0] * len(sds)
        if self.physics is not None:
            means += [_PHYSICS[0]] + [0.0] * self._n_shares
            sds += [_PHYSICS[1]] + [_CORRECTION_SD] * self._n_shares
        revised = 1.0 if self.revise else 1e-3
        means += [_TRUST] * len(self._kinds) + [
            _TRUST * (self._belief(source) - 1) for source, _ in self.sources
        ]
        sds += [_KIND_SD * revised] * len(self._kinds) + [_SOURCE_SD * revised] * len(self.sources)
        return Prior(
            mean=np.asarray(means, dtype=np.float64),
            sd=np.asarray(sds, dtype=np.float64),
            offset=0.0,
            offset_sd=_OFFSET_SD,
            residual_sd=residual_sd,
            structure_sd=structure_sd,
            pair_sd=_PAIR_SD,
        )

    @cached_property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """(source, kind) of all claims."""
        return tuple(dict.fromkeys((c.source, c.kind) for c in self.claims.values()))

    def claimed(self, x: Points) -> Floats:
        """What each source claims of each point, shape (n, n_sources)."""
        return x.features[:, x.features.shape[1] - len(self.sources) :]

    @cached_property
    def trust_rows(self) -> Floats:
        """For each source the columns that make up trust in it."""
        n_before = len(self.encoding.columns)
        n_before += 0 if self.physics is None else 1 + self._n_shares
        rows = np.zeros((len(self.sources), n_before + len(self._kinds) + len(self.sources)))
        for i, (_, kind) in enumerate(self.sources):
            rows[i, n_before + self._kinds.index(kind)] = 1.0
            rows[i, n_before + len(self._kinds) + i] = 1.0
        return rows

    @cached_property
    def may_surprise(self) -> Floats:
        """One on the encoding's own columns."""
        n_other = self.trust_rows.shape[1] - len(self.encoding.columns)
        return np.asarray([1.0] * len(self.encoding.columns) + [0.0] * n_other)

    @cached_property
    def start_log_time(self) -> float:
        """Log of what the physics expects of the baseline, s."""
        return float(self._start[0][0])

    @cached_property
    def _start(self) -> tuple[Floats, Floats]:
        assert self.physics is not None
        return log_and_shares(self.physics.time_s(self.encoding.rows([{}])))

    @cached_property
    def _n_shares(self) -> int:
        return self._start[1].shape[1]

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for _, kind in self.sources))

    @cached_property
    def _claim_table(self) -> Floats:
        """What each one-hot column is claimed to add to log time, by kind and then by source."""
        table = np.zeros((self.encoding.n_values, len(self._kinds) + len(self.sources)))
        for i, value in enumerate(self.encoding.values):
            claim = self.claims.get(value)
            if claim is not None and self.encoding.is_changed[i]:
                source = self.sources.index((claim.source, claim.kind))
                table[i, self._kinds.index(claim.kind)] = -claim.log_speedup
                table[i, len(self._kinds) + source] = -claim.log_speedup
        return table

    def _belief(self, source: str) -> float:
        return min((c.belief for c in self.claims.values() if c.source == source), default=1.0)

    def _sd(self, column: Column) -> float:
        claim = None if column.value is None else self.claims.get((column.knob.name, column.value))
        if claim:
            return claim.sd if self.revise else min(claim.sd, 0.02)
        if column.knob.is_patch:
            return _PATCH_SD
        return _KNOB_SD if self.physics is not None else _UNEXPLAINED_SD


def _chosen(
    columns: _Columns, offset: Mapping[str, float], x: Points, y: Floats, noise: Floats
) -> Prior:
    """The prior of the grid that explains the (last) trials best, hyper-priors included."""
    kept = slice(max(0, len(y) - _GRID_N), None)
    scales = list(product(_SCALES, _RESIDUALS, _STRUCTURES))
    grid = [replace(columns.prior(*chosen), **offset) for chosen in scales]
    fits = [Posterior(prior, x.take(kept), y[kept], noise[kept]) for prior in grid]
    evidence = [
        fit.log_evidence - 0.5 * (np.log(s) / 0.7) ** 2 - 0.5 * (np.log(g / 0.2) / 0.9) ** 2
        for fit, (s, _, g) in zip(fits, scales, strict=True)
    ]
    return grid[int(np.argmax(evidence))]


def _offset(columns: _Columns, rows: Rows, y: Floats) -> dict[str, float]:
    """What is known of the baseline's own log time: its readings, else the physics."""
    start = columns.encoding.rows([{}])
    own = y[(rows == start).all(axis=1)]
    if len(own):
        return {"offset": float(np.median(own)), "offset_sd": _OFFSET_SD}
    if columns.physics is not None:
        return {"offset": columns.start_log_time, "offset_sd": _BEFORE_ANY_SD}
    return {"offset": float(y.mean()) if len(y) else 0.0, "offset_sd": _OFFSET_SD}


def _slow_nodes_heard_less(posterior: Posterior, noise: Floats | None = None) -> Floats:
    """Noise variances with that of surprisingly slow readings raised to their surprise."""
    noise = posterior.noise_variance if noise is None else noise
    mean, variance = posterior.leave_one_out()
    late = posterior.y - mean
    surprise = late / np.sqrt(variance + noise)
    return np.where(surprise > _SLOW, late**2, noise)
