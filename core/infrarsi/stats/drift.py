"""How fast the machine is now, against when the baseline was calibrated, from short readings.

The natural log of the machine's slowness is a random walk, read with noise. Its rate and the
noise are averaged over a grid under priors, so that two readings already say something (the
noise a calibration has seen, a walk of 0.3 % a minute). Leaves out running anything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infrarsi.frozen import Frozen

_START_SD = 0.1
"""How far the machine may be from its calibration before anything was read."""

_RATES = np.array([0.0005, 0.001, 0.002, 0.003, 0.006, 0.012, 0.025, 0.05])
"""Standard deviation of the walk over a minute, natural log."""

_USUAL_RATE = 0.003
_NOISES = np.array([0.4, 0.6, 0.8, 1.0, 1.3, 1.8, 2.5, 4.0])
"""The noise as a multiple of what was expected."""

_PRIOR_SD = 0.7
"""Of both, natural log."""

_Floats = NDArray[np.float64]


class Anchor(Frozen):
    """A reading of the baseline at a time: natural log of its step time over the calibrated one."""

    at_s: float
    log_ratio: float


@dataclass(frozen=True)
class Drift:
    """What the anchors say; `noise_sd` is a reading's own noise (natural log)."""

    anchors: tuple[Anchor, ...]
    noise_sd: float
    _weights: _Floats
    _rates: _Floats
    _noises: _Floats

    def at(self, at_s: float) -> tuple[float, float]:
        """Natural log of how slow the machine was at that time, and its standard deviation.

        Between anchors this interpolates; without any it is 0, which is what was calibrated.
        """
        if not self.anchors:
            return 0.0, 0.0
        found = [
            _posterior(self.anchors, rate, noise, at_s)
            for rate, noise in zip(self._rates, self._noises, strict=True)
        ]
        means = np.array([mean for mean, _ in found])
        variances = np.array([variance for _, variance in found])
        mean = float(self._weights @ means)
        variance = float(self._weights @ (variances + (means - mean) ** 2))
        return mean, math.sqrt(max(variance, 0.0))

    def is_due(self, at_s: float, *, trial_s: float, anchor_s: float) -> bool:
        """Whether another anchor is worth its time.

        It is where the walk since the last one may have added more to the variance of a trial's
        reading than spending the anchor's time on the trial would take away.
        """
        if not self.anchors:
            return True
        minutes = max(0.0, at_s - self.anchors[-1].at_s) / 60
        added = float(self._weights @ self._rates**2) * minutes
        return added > self.noise_sd**2 * anchor_s / max(trial_s, 1e-9)


def fit_drift(anchors: Sequence[Anchor], noise_sd: float) -> Drift:
    """The drift through these anchors, in any order of time.

    Args:
        anchors: readings of the baseline.
        noise_sd: a reading's noise as the calibration knows it, natural log, above 0.
    """
    ordered = tuple(sorted(anchors, key=lambda a: a.at_s))
    rates, noises = (grid.ravel() for grid in np.meshgrid(_RATES, _NOISES * noise_sd))
    log_weights = np.array(
        [
            _log_likelihood(ordered, rate, noise)
            - _surprise(rate, _USUAL_RATE)
            - _surprise(noise, noise_sd)
            for rate, noise in zip(rates, noises, strict=True)
        ]
    )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return Drift(ordered, float(weights @ noises), weights, rates, noises)


def _surprise(value: float, expected: float) -> float:
    return 0.5 * (math.log(value / expected) / _PRIOR_SD) ** 2


def _covariance(left: _Floats, right: _Floats, rate: float) -> _Floats:
    """Of the walk at two sets of times, s; it starts anywhere near the calibration."""
    together: _Floats = np.minimum.outer(left, right)
    return _START_SD**2 + rate**2 * together / 60


def _times(anchors: Sequence[Anchor]) -> _Floats:
    return np.array([a.at_s for a in anchors]) - anchors[0].at_s


def _gram(anchors: Sequence[Anchor], rate: float, noise: float) -> _Floats:
    times = _times(anchors)
    return _covariance(times, times, rate) + noise**2 * np.eye(len(times))


def _log_likelihood(anchors: Sequence[Anchor], rate: float, noise: float) -> float:
    if not anchors:
        return 0.0
    read = np.array([a.log_ratio for a in anchors])
    gram = _gram(anchors, rate, noise)
    _, log_det = np.linalg.slogdet(gram)
    return float(-0.5 * (read @ np.linalg.solve(gram, read) + log_det))


def _posterior(
    anchors: Sequence[Anchor], rate: float, noise: float, at_s: float
) -> tuple[float, float]:
    """Mean and variance of the walk at a time. Before the first anchor it walks backwards."""
    time = at_s - anchors[0].at_s
    before = max(0.0, -time)
    here = np.array([max(0.0, time)])
    across = _covariance(here, _times(anchors), rate)[0]
    solved = np.linalg.solve(_gram(anchors, rate, noise), across)
    read = np.array([a.log_ratio for a in anchors])
    own = _covariance(here, here, rate)[0, 0] + rate**2 * before / 60
    return float(solved @ read), float(own - solved @ across)
