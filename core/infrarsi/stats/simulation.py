"""Simulated noise of campaigns: heavy tails, drift, and a machine that changed since its A/A.

Log ratios of units that differ by nothing. Tails are Student's with 4 degrees of freedom; units
of a campaign share a random walk; the confirmation's spread differs from the A/A control's by a
log-normal factor. Where A/A units were recorded, theirs are resampled, with exchanged labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from infrarsi.stats.statistic import Floats

_TAIL_DF = 4
_WALK_SD = 0.15
_SPREAD_LOG_SD = 0.25
_SMOOTHING = 0.3


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What a simulated unit's log ratio is drawn from, on the scale `sd`.

    `recorded` are log ratios of real A/A units; empty means Student's t alone.
    """

    sd: float = 1.0
    recorded: tuple[float, ...] = ()

    def control(self, rng: Generator, n_campaigns: int, n_aa: int) -> Floats:
        """Sum of squares of each campaign's A/A units, shape (n_campaigns,)."""
        walk = np.zeros(n_campaigns)
        total = np.zeros(n_campaigns)
        for _ in range(n_aa):
            walk += self._scale() * _WALK_SD * rng.standard_normal(n_campaigns)
            total += np.square(self._draw(rng, (n_campaigns,)) + walk)
        return total

    def confirmation(self, rng: Generator, n_campaigns: int, n_units: int) -> Floats:
        """Log ratios of each campaign's units, shape (n_campaigns, n_units), mean zero."""
        shape = (n_campaigns, n_units)
        spread = np.exp(_SPREAD_LOG_SD * rng.standard_normal((n_campaigns, 1)))
        steps = self._scale() * _WALK_SD * rng.standard_normal(shape)
        return spread * (self._draw(rng, shape) + np.cumsum(steps, axis=1))

    def _scale(self) -> float:
        if not self.recorded:
            return self.sd
        return float(np.sqrt(np.mean(np.square(self.recorded))))

    def _draw(self, rng: Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
        tails = rng.standard_t(_TAIL_DF, shape) / np.sqrt(_TAIL_DF / (_TAIL_DF - 2))
        if not self.recorded:
            return self.sd * tails
        picked = rng.choice(np.asarray(self.recorded), shape) * rng.choice([-1.0, 1.0], shape)
        return picked + _SMOOTHING * self._scale() * tails
