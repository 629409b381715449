"""Peak memory: log of what is above the measured base, additive, with out-of-memory as a bound.

An out-of-memory trial says that the peak is above a bound. Its place in the fit is found by
expectation propagation: truncated-normal moments of its leave-one-out prediction, damped; a
failure that was predicted anyway gets no weight. For a setting that itself ran out of memory
the prediction is the other trials' truncated at the bound, so that a failure never lowers the
upper end there, and a peak that was measured is never above the upper end of its setting.
Leaves out failures to allocate while compiling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import norm, truncnorm

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Column, Encoding, Floats
from infrarsi.models.gaussian import Posterior, Prior
from infrarsi.models.prediction import LEVEL, Effect, Prediction

_KNOB_SD = 0.3
_DOUBLING_SD = 0.3
_OFFSET_SD = 0.5
_RESIDUAL_SD = 0.08
_NOISE_SD = 0.02
_NO_WEIGHT = 1e4
_N_SWEEPS = 12
_DAMPING = 0.7
_TINY_GIB = 1e-4
_SAVED = {"saver": -0.2, "hungry": 0.2, "neutral": 0.0}

Key = tuple[Scalar, ...]


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What one trial tells: the peak, GiB, or (censored) that it is above `gib`."""

    setting: Setting
    gib: float
    censored: bool = False


@dataclass(frozen=True)
class MemoryModel:
    """Fitted on measured peaks and bounds; `sites` are the bounds' (value, variance) in the fit."""

    encoding: Encoding
    prior: Prior
    measured: tuple[Peak, ...]
    bounds: Mapping[Key, Peak]
    base_gib: float
    sites: tuple[tuple[float, float], ...]

    def predict(self, settings: Sequence[Setting]) -> Prediction:
        """Peak memory of the fullest device, GiB, with a 90 % interval."""
        tail = (1 - LEVEL) / 2
        value, low, high = (self._quantile(settings, q) for q in (0.5, tail, 1 - tail))
        seen = np.asarray([self._highest_seen.get(self.encoding.key(s), 0.0) for s in settings])
        return Prediction(value=value, low=low, high=np.maximum(high, seen))

    def p_fit(self, settings: Sequence[Setting], limit_gib: float) -> Floats:
        """Probability that the peak stays within `limit_gib`, shape (n,)."""
        mean, sd, bound = self._marginals(settings)
        limit = (_log_above(limit_gib, self.base_gib) - mean) / sd
        below_bound = norm.cdf((bound - mean) / sd)
        inside = np.maximum(norm.cdf(limit) - below_bound, 0.0)
        return np.asarray(inside / np.maximum(1.0 - below_bound, 1e-300), dtype=np.float64)

    def effects(self, changes: Sequence[tuple[str, Scalar]]) -> tuple[Effect, ...]:
        """The additive effect of each change alone on the log of what is above the base."""
        means, sds = self._posterior.effects(self.encoding.effect_rows(changes))
        return tuple(
            Effect(knob=k, value=v, mean=float(m), sd=float(s))
            for (k, v), m, s in zip(changes, means, sds, strict=True)
        )

    @cached_property
    def _posterior(self) -> Posterior:
        return _posterior(self)

    def _quantile(self, settings: Sequence[Setting], q: float) -> Floats:
        mean, sd, bound = self._marginals(settings)
        logs = truncnorm.ppf(q, (bound - mean) / sd, np.inf, loc=mean, scale=sd)
        return self.base_gib + np.exp(np.maximum(logs, bound))

    def _marginals(self, settings: Sequence[Setting]) -> tuple[Floats, Floats, Floats]:
        """Mean, sd and lower bound of the log; the bound's own site left out where there is one."""
        features, codes = self.encoding.features(settings), self.encoding.codes(settings)
        mean, variance = self._posterior.predict(features, codes)
        bound = np.full(len(settings), -np.inf)
        for i, setting in enumerate(settings):
            key = self.encoding.key(setting)
            if key in self.bounds:
                others = _fit(self, {k: b for k, b in self.bounds.items() if k != key})
                own_mean, own_variance = others._posterior.predict(
                    features[i : i + 1], codes[i : i + 1]
                )
                mean[i], variance[i] = own_mean[0], own_variance[0]
                bound[i] = _log_above(self.bounds[key].gib, self.base_gib)
        return mean, np.sqrt(variance + _NOISE_SD**2), bound

    @cached_property
    def _highest_seen(self) -> dict[Key, float]:
        highest: dict[Key, float] = {}
        for peak in self.measured:
            key = self.encoding.key(peak.setting)
            highest[key] = max(peak.gib, highest.get(key, 0.0))
        return highest


def fit_memory(
    encoding: Encoding,
    peaks: Sequence[Peak],
    roles: Mapping[tuple[str, Scalar], str] | None = None,
    base_gib: float = 0.0,
) -> MemoryModel:
    """Fit on at least one measured peak or bound.

    Args:
        encoding: the space and its baseline.
        peaks: measured peaks and bounds, GiB; of several bounds of one setting the highest counts.
        roles: "saver" or "hungry" for (knob, value) pairs that claim it.
        base_gib: what the process uses before the job allocates (interpreter and libraries).
    """
    measured = tuple(p for p in peaks if not p.censored)
    bounds: dict[Key, Peak] = {}
    for peak in (p for p in peaks if p.censored):
        key = encoding.key(peak.setting)
        if key not in bounds or bounds[key].gib < peak.gib:
            bounds[key] = peak
    prior = _prior(encoding, measured or tuple(bounds.values()), roles or {}, base_gib)
    empty = MemoryModel(encoding, prior, measured, {}, base_gib, ())
    return _fit(empty, bounds)


def _fit(model: MemoryModel, bounds: Mapping[Key, Peak]) -> MemoryModel:
    """The model with these bounds: sweeps of damped expectation propagation over their sites."""
    sites = [(_log_above(b.gib, model.base_gib), _NO_WEIGHT) for b in bounds.values()]
    fitted = MemoryModel(
        model.encoding, model.prior, model.measured, bounds, model.base_gib, tuple(sites)
    )
    limits = np.asarray([_log_above(b.gib, model.base_gib) for b in bounds.values()])
    for _ in range(_N_SWEEPS if sites else 0):
        mean, variance = _posterior(fitted).leave_one_out()
        n = len(model.measured)
        sites = [
            _site(float(m), float(v), float(limit), old)
            for m, v, limit, old in zip(mean[n:], variance[n:], limits, fitted.sites, strict=True)
        ]
        fitted = MemoryModel(
            model.encoding, model.prior, model.measured, bounds, model.base_gib, tuple(sites)
        )
    return fitted


def _site(
    mean: float, variance: float, limit: float, old: tuple[float, float]
) -> tuple[float, float]:
    """Value and variance that stand for "above the limit" beside N(mean, variance).

    Moments of the truncated normal: Johnson, Kotz and Balakrishnan 1994, section 10.1.
    """
    total = variance + _NOISE_SD**2
    a = (limit - mean) / np.sqrt(total)
    ratio = float(np.exp(norm.logpdf(a) - norm.logsf(a)))
    moved = mean + variance / np.sqrt(total) * ratio
    shrunk = max(variance - variance**2 / total * ratio * (ratio - a), 1e-9)
    precision = max(1 / shrunk - 1 / variance, 1 / _NO_WEIGHT)
    weighted = moved / shrunk - mean / variance if precision > 1 / _NO_WEIGHT else limit * precision
    old_precision, old_weighted = 1 / old[1], old[0] / old[1]
    precision = _DAMPING * precision + (1 - _DAMPING) * old_precision
    weighted = _DAMPING * weighted + (1 - _DAMPING) * old_weighted
    return float(weighted / precision), float(1 / precision)


def _posterior(model: MemoryModel) -> Posterior:
    settings = [p.setting for p in (*model.measured, *model.bounds.values())]
    logs = [_log_above(p.gib, model.base_gib) for p in model.measured]
    values = np.asarray([*logs, *(value for value, _ in model.sites)], dtype=np.float64)
    noise = [_NOISE_SD**2] * len(logs) + [variance for _, variance in model.sites]
    return Posterior(
        model.prior,
        model.encoding.features(settings),
        model.encoding.codes(settings),
        values,
        np.asarray(noise, dtype=np.float64),
    )


def _prior(
    encoding: Encoding,
    anchors: Sequence[Peak],
    roles: Mapping[tuple[str, Scalar], str],
    base_gib: float,
) -> Prior:
    own = [p for p in anchors if not encoding.changes(p.setting)] or anchors
    means = [_expected(roles, column) for column in encoding.columns]
    sds = [_DOUBLING_SD if column.value is None else _KNOB_SD for column in encoding.columns]
    return Prior(
        mean=np.asarray(means, dtype=np.float64),
        sd=np.asarray(sds, dtype=np.float64),
        offset=float(np.mean([_log_above(p.gib, base_gib) for p in own])),
        offset_sd=_OFFSET_SD,
        residual_sd=_RESIDUAL_SD,
    )


def _expected(roles: Mapping[tuple[str, Scalar], str], column: Column) -> float:
    if column.value is None:
        return 0.0
    return _SAVED[roles.get((column.knob.name, column.value), "neutral")]


def _log_above(gib: float, base_gib: float) -> float:
    return float(np.log(max(gib - base_gib, _TINY_GIB)))
