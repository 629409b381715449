"""How fast the machine is now, against when the baseline was calibrated, from short readings.

The natural log of the machine's slowness is a random walk, read with noise. Its rate and the
noise are averaged over a grid under priors, so that two readings already say something (the
noise a calibration has seen, a walk of 0.3 % a minute). Where the walk starts is near the
calibration as a rule, and anywhere where the machine meets another load: a mixture of both.
Leaves out running anything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infrarsi.frozen import Frozen

_STARTS = np.array([0.03, 0.2, 1.0])
_START_WEIGHTS = {0.03: 0.6, 0.2: 0.3, 1.0: 0.1}
"""How far the machine may be from its calibration before anything was read."""

_RATES = np.array([0.0005, 0.0015, 0.003, 0.006, 0.015, 0.05])
"""Standard deviation of the walk over a minute, natural log."""

_USUAL_RATE = 0.003
_NOISES = np.array([0.4, 0.65, 1.0, 1.5, 2.3, 4.0])
"""The noise as a multiple of what was expected."""

_PRIOR_SD = 0.7
"""Of both, natural log."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Walk:
    """One point of the grid, all standard deviations, natural log; the rate is over a minute."""

    start: float
    rate: float
    noise: float


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
    _walks: tuple[_Walk, ...]

    def at(self, at_s: float) -> tuple[float, float]:
        """Natural log of how slow the machine was at that time, and its standard deviation.

        Between anchors this interpolates; without any it is 0, which is what was calibrated.
        """
        if not self.anchors:
            return 0.0, 0.0
        found = [_posterior(self.anchors, walk, at_s) for walk in self._walks]
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
        added = float(self._weights @ [walk.rate**2 for walk in self._walks]) * minutes
        return added > self.noise_sd**2 * anchor_s / max(trial_s, 1e-9)


def fit_drift(anchors: Sequence[Anchor], noise_sd: float) -> Drift:
    """The drift through these anchors, in any order of time.

    Args:
        anchors: readings of the baseline.
        noise_sd: a reading's noise as the calibration knows it, natural log, above 0.
    """
    ordered = tuple(sorted(anchors, key=lambda a: a.at_s))
    walks = tuple(
        _Walk(start=float(start), rate=float(rate), noise=float(noise))
        for start in _STARTS
        for rate in _RATES
        for noise in _NOISES * noise_sd
    )
    log_weights = np.array(
        [_log_likelihood(ordered, walk) + _log_prior(walk, noise_sd) for walk in walks]
    )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return Drift(ordered, float(weights @ [walk.noise for walk in walks]), weights, walks)


def _log_prior(walk: _Walk, noise_sd: float) -> float:
    surprises = (walk.rate / _USUAL_RATE, walk.noise / noise_sd)
    return math.log(_START_WEIGHTS[walk.start]) - sum(
        0.5 * (math.log(ratio) / _PRIOR_SD) ** 2 for ratio in surprises
    )


def _covariance(left: _Floats, right: _Floats, walk: _Walk) -> _Floats:
    """Of the walk at two sets of times, s after its start."""
    together: _Floats = np.minimum.outer(left, right)
    return walk.start**2 + walk.rate**2 * together / 60


def _times(anchors: Sequence[Anchor]) -> _Floats:
    return np.array([a.at_s for a in anchors]) - anchors[0].at_s


def _gram(anchors: Sequence[Anchor], walk: _Walk) -> _Floats:
    times = _times(anchors)
    return _covariance(times, times, walk) + walk.noise**2 * np.eye(len(times))


def _log_likelihood(anchors: Sequence[Anchor], walk: _Walk) -> float:
    if not anchors:
        return 0.0
    read = np.array([a.log_ratio for a in anchors])
    gram = _gram(anchors, walk)
    _, log_det = np.linalg.slogdet(gram)
    return float(-0.5 * (read @ np.linalg.solve(gram, read) + log_det))


def _posterior(anchors: Sequence[Anchor], walk: _Walk, at_s: float) -> tuple[float, float]:
    """Mean and variance of the walk at a time. Before the first anchor it walks backwards."""
    time = at_s - anchors[0].at_s
    before = max(0.0, -time)
    here = np.array([max(0.0, time)])
    across = _covariance(here, _times(anchors), walk)[0]
    solved = np.linalg.solve(_gram(anchors, walk), across)
    read = np.array([a.log_ratio for a in anchors])
    own = _covariance(here, here, walk)[0, 0] + walk.rate**2 * before / 60
    return float(solved @ read), float(own - solved @ across)
