"""Peak memory: log of what is above the measured base, with out of memory as a bound.

    log m = offset + (log m_phys - log m_phys of the start) + corrections · component shares
            + prices of settings and patches + pairs + residual

A correction says how far one component of the physics (activations, optimizer state, ...) is off;
prices have heavy tails, so that one surprising switch does not keep causing failures.

An out-of-memory trial says that the peak is above a bound. Its place in the fit is found by
expectation propagation: truncated-normal moments of its leave-one-out prediction, damped; a
failure that was predicted anyway gets no weight. For a setting that itself ran out of memory
the prediction is the other trials' truncated at the bound, so that a failure never lowers the
upper end there, and a peak that was measured is never above the upper end of its setting.
Leaves out failures to allocate while compiling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Column, Encoding, Floats, Rows
from infrarsi.models.gaussian import Points, Posterior, Prior, heavier_tails, points, spread
from infrarsi.models.physics import Physics, log_and_shares
from infrarsi.models.prediction import LEVEL, Effect, Prediction

_KNOB_SD = 0.3
_EXPLAINED_SD = 0.04
_PATCH_SD = 0.1
_DOUBLING_SD = 0.3
_OFFSET_SD = 0.5
_PHYSICS = (1.0, 0.1)
_CORRECTION_SD = 0.35
_RESIDUAL_SD = 0.02
_STRUCTURE_SD = 0.15
_PAIR_SD = 0.01
_NOISE_SD = 0.015
_NO_WEIGHT = 1e4
_N_SWEEPS = 10
_DAMPING = 0.7
_TINY_GIB = 1e-4
_FEW = 3
_MOST_MEASURED = 250
_MOST_BOUNDS = 100
_SETTLED = 1e-3
_SAVED = {"saver": -0.12, "hungry": 0.12, "neutral": 0.0}

Key = tuple[int, ...]
Sites = tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What one trial tells: the peak, GiB, or (censored) that it is above `gib`."""

    setting: Setting
    gib: float
    censored: bool = False


@dataclass(frozen=True)
class MemoryModel:
    """Fitted on measured peaks and bounds; `sites` are the bounds' (value, variance) in the fit.

    `prior` is `start` with the tails the fit gave it; `seen` is the highest peak or bound of each
    setting, GiB, of all that were told, also where only the newest are fitted.
    """

    columns: "_Columns"
    start: Prior
    prior: Prior
    measured: tuple[Peak, ...]
    bounds: Mapping[Key, Peak]
    seen: Mapping[Key, float]
    x: Points
    sites: Sites

    def predict(self, rows: Rows) -> Prediction:
        """Peak memory of the fullest device, GiB, with a 90 % interval."""
        marginals = self._marginals(rows)
        tail = (1 - LEVEL) / 2
        value, low, high = (self._quantile(marginals, q) for q in (0.5, tail, 1 - tail))
        seen = np.asarray([self.seen.get(_key(row), 0.0) for row in rows])
        return Prediction(value=value, low=low, high=np.maximum(high, seen))

    def p_fit(self, rows: Rows, limit_gib: float) -> Floats:
        """Probability that the peak stays within `limit_gib`, shape (n,)."""
        mean, sd, bound = self._marginals(rows)
        limit = (self.columns.log_above(limit_gib) - mean) / sd
        below_bound = ndtr((bound - mean) / sd)
        inside = np.maximum(ndtr(limit) - below_bound, 0.0)
        return np.asarray(inside / np.maximum(1.0 - below_bound, 1e-300), dtype=np.float64)

    def effects(self, changes: Sequence[tuple[str, Scalar]]) -> tuple[Effect, ...]:
        """What each change alone adds to the log of what is above the base, physics included."""
        encoding = self.columns.encoding
        rows = encoding.rows([{name: value} for name, value in changes])
        start = self.columns.points(encoding.rows([{}])).features
        means, sds = self.posterior.effects(self.columns.points(rows).features - start)
        return tuple(
            Effect(knob=k, value=v, mean=float(m), sd=float(s))
            for (k, v), m, s in zip(changes, means, sds, strict=True)
        )

    @cached_property
    def posterior(self) -> Posterior:
        """The regression with the bounds' sites as observations."""
        return _posterior(self)

    def _quantile(self, marginals: tuple[Floats, Floats, Floats], q: float) -> Floats:
        """Of the normal truncated below at the bound."""
        mean, sd, bound = marginals
        below = ndtr((bound - mean) / sd)
        far = below > 1 - 1e-12
        inner = mean + sd * ndtri(np.where(far, 0.5, below + q * (1 - below)))
        logs = np.where(far, bound, inner)
        return self.columns.base_gib + np.exp(np.maximum(logs, bound))

    def _marginals(self, rows: Rows) -> tuple[Floats, Floats, Floats]:
        """Mean, sd and lower bound of the log; the bound's own site left out where there is one."""
        x = self.columns.points(rows)
        mean, variance = self.posterior.predict(x)
        variance = variance * self._spread**2
        bound = np.full(len(rows), -np.inf)
        for key, peak in self.bounds.items():
            for i in np.flatnonzero((rows == np.asarray(key)).all(axis=1)):
                others = self._without_bound(key)
                own_mean, own_variance = others.posterior.predict(x.take(slice(i, i + 1)))
                mean[i], variance[i] = own_mean[0], own_variance[0] * others._spread**2
                bound[i] = self.columns.log_above(peak.gib)
        return mean, np.sqrt(variance + _NOISE_SD**2), bound

    def _without_bound(self, key: Key) -> "MemoryModel":
        if key not in self._left_out:
            kept = {k: b for k, b in self.bounds.items() if k != key}
            x = self.columns.told(self.measured, kept)
            start = replace(self, prior=self.start, bounds=kept, x=x, sites=())
            self._left_out[key] = _with_tails(start)
        return self._left_out[key]

    @cached_property
    def _left_out(self) -> "dict[Key, MemoryModel]":
        return {}

    @cached_property
    def _spread(self) -> float:
        return spread(self.posterior, len(self.measured))


def fit_memory(
    encoding: Encoding,
    peaks: Sequence[Peak],
    roles: Mapping[tuple[str, Scalar], str] | None = None,
    base_gib: float = 0.0,
    physics: Physics | None = None,
) -> MemoryModel:
    """Fit on measured peaks and bounds; without any, the model is its prior (needs `physics`).

    Args:
        encoding: the space and its baseline.
        peaks: measured peaks and bounds, GiB; of several bounds of one setting the highest counts.
        roles: "saver" or "hungry" for (knob, value) pairs that claim it.
        base_gib: what the process uses before the job allocates (interpreter and libraries).
        physics: analytic memory by component, where the job is known.
    """
    columns = _Columns(encoding, roles or {}, base_gib, physics)
    measured = tuple(p for p in peaks if not p.censored)[-_MOST_MEASURED:]
    seen: dict[Key, float] = {}
    bounds: dict[Key, Peak] = {}
    for peak, row in zip(peaks, encoding.rows([p.setting for p in peaks]), strict=True):
        key = _key(row)
        seen[key] = max(peak.gib, seen.get(key, 0.0))
        if peak.censored and (key not in bounds or bounds[key].gib < peak.gib):
            bounds[key] = peak
    bounds = dict(list(bounds.items())[-_MOST_BOUNDS:])
    prior = columns.prior(measured or tuple(bounds.values()))
    x = columns.told(measured, bounds)
    return _with_tails(MemoryModel(columns, prior, prior, measured, bounds, seen, x, ()))


@dataclass(frozen=True)
class _Columns:
    """The encoding's columns, then the physics as a whole and the shares of its components."""

    encoding: Encoding
    roles: Mapping[tuple[str, Scalar], str]
    base_gib: float
    physics: Physics | None

    def points(self, rows: Rows) -> Points:
        if self.physics is None:
            return points(self.encoding, rows)
        log_total, shares = log_and_shares(self.physics.memory_gib(rows))
        start_total, start_shares = self._start
        return points(
            self.encoding, rows, (log_total - start_total)[:, None], shares - start_shares
        )

    def told(self, measured: Sequence[Peak], bounds: Mapping[Key, Peak]) -> Points:
        """Points of the measured peaks, then of the bounds."""
        peaks = (*measured, *bounds.values())
        return self.points(self.encoding.rows([p.setting for p in peaks]))

    def prior(self, anchors: Sequence[Peak]) -> Prior:
        """Around the start's own readings, else the anchors' mean, else the physics."""
        own = [p for p in anchors if not self.encoding.changes(p.setting)] or anchors
        means = [self._expected(c) for c in self.encoding.columns]
        sds = [self._sd(c) for c in self.encoding.columns]
        if self.physics is not None:
            means += [_PHYSICS[0]] + [0.0] * self._start[1].shape[1]
            sds += [_PHYSICS[1]] + [_CORRECTION_SD] * self._start[1].shape[1]
        known = [self.log_above(p.gib) for p in own]
        guess = float(self._start[0][0]) if self.physics is not None else 0.0
        return Prior(
            mean=np.asarray(means, dtype=np.float64),
            sd=np.asarray(sds, dtype=np.float64),
            offset=float(np.mean(known)) if known else guess,
            offset_sd=_OFFSET_SD,
            residual_sd=_RESIDUAL_SD,
            structure_sd=_STRUCTURE_SD,
            pair_sd=_PAIR_SD,
        )

    def log_above(self, gib: float) -> float:
        return float(np.log(max(gib - self.base_gib, _TINY_GIB)))

    @cached_property
    def may_surprise(self) -> Floats:
        """One on the encoding's own columns."""
        n_other = 0 if self.physics is None else 1 + self._start[1].shape[1]
        return np.asarray([1.0] * len(self.encoding.columns) + [0.0] * n_other)

    @cached_property
    def _start(self) -> tuple[Floats, Floats]:
        assert self.physics is not None
        return log_and_shares(self.physics.memory_gib(self.encoding.rows([{}])))

    def _expected(self, column: Column) -> float:
        if column.value is None:
            return 0.0
        return _SAVED[self.roles.get((column.knob.name, column.value), "neutral")]

    def _sd(self, column: Column) -> float:
        if column.knob.is_patch:
            return _PATCH_SD if self.physics is not None else _KNOB_SD
        if self.physics is not None:
            return _EXPLAINED_SD
        return _DOUBLING_SD if column.value is None else _KNOB_SD


def _with_tails(start: MemoryModel) -> MemoryModel:
    """Fitted, with the prior's tails as heavy as the data ask, where there are enough of them."""
    fitted = _fit(start)
    if len(start.measured) + len(start.bounds) < _FEW:
        return fitted
    tailed = heavier_tails(fitted.posterior, start.prior, start.columns.may_surprise)
    return _fit(replace(start, prior=tailed, sites=fitted.sites))


def _fit(model: MemoryModel) -> MemoryModel:
    """The model with its bounds: sweeps of damped expectation propagation over their sites."""
    limits = np.asarray([model.columns.log_above(b.gib) for b in model.bounds.values()])
    sites = model.sites or tuple((float(limit), _NO_WEIGHT) for limit in limits)
    fitted = replace(model, sites=sites)
    for _ in range(_N_SWEEPS if sites else 0):
        mean, variance = fitted.posterior.leave_one_out()
        n = len(model.measured)
        sites = tuple(
            _site(float(m), float(v), float(limit), old)
            for m, v, limit, old in zip(mean[n:], variance[n:], limits, fitted.sites, strict=True)
        )
        moved = max(
            abs(np.log(new[1] / old[1])) for new, old in zip(sites, fitted.sites, strict=True)
        )
        fitted = replace(model, sites=sites)
        if moved < _SETTLED:
            break
    return fitted


def _site(
    mean: float, variance: float, limit: float, old: tuple[float, float]
) -> tuple[float, float]:
    """Value and variance that stand for "above the limit" beside N(mean, variance).

    Moments of the truncated normal: Johnson, Kotz and Balakrishnan 1994, section 10.1.
    """
    total = variance + _NOISE_SD**2
    a = (limit - mean) / np.sqrt(total)
    ratio = float(np.exp(-0.5 * a * a - 0.5 * np.log(2 * np.pi) - log_ndtr(-a)))
    moved = mean + variance / np.sqrt(total) * ratio
    shrunk = max(variance - variance**2 / total * ratio * (ratio - a), 1e-9)
    precision = max(1 / shrunk - 1 / variance, 1 / _NO_WEIGHT)
    weighted = moved / shrunk - mean / variance if precision > 1 / _NO_WEIGHT else limit * precision
    old_precision, old_weighted = 1 / old[1], old[0] / old[1]
    precision = _DAMPING * precision + (1 - _DAMPING) * old_precision
    weighted = _DAMPING * weighted + (1 - _DAMPING) * old_weighted
    return float(weighted / precision), float(1 / precision)


def _posterior(model: MemoryModel) -> Posterior:
    logs = [model.columns.log_above(p.gib) for p in model.measured]
    values = np.asarray([*logs, *(value for value, _ in model.sites)], dtype=np.float64)
    noise = [_NOISE_SD**2] * len(logs) + [variance for _, variance in model.sites]
    return Posterior(
        model.prior,
        model.x,
        values,
        np.asarray(noise, dtype=np.float64),
    )


def _key(row: Rows) -> Key:
    return tuple(row.tolist())
