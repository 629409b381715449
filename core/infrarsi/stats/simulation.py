"""Simulated noise of campaigns: heavy tails, drift, and a machine that changed since its A/A.

Units that differ by nothing, made of process pairs. Pairs' tails are Student's with 4 degrees of
freedom; units of a campaign share a random walk; the confirmation's spread differs from the A/A
control's by a log-normal factor. The slowness of the job started first does not vary, which
leaves the least to see of the noise. `recorded` has worlds made of real pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from infrarsi.stats.statistic import Units

_TAIL_DF = 4
_WALK_SD = 0.15
_SPREAD_LOG_SD = 0.25


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What a simulated unit is drawn from; `sd` is its log ratio's standard deviation."""

    sd: float = 1.0

    def control(self, rng: Generator, n_campaigns: int, n_aa: int) -> Units:
        """Each campaign's A/A units."""
        return self._draw(rng, n_campaigns, n_aa, 0.0)

    def confirmation(self, rng: Generator, n_campaigns: int, n_units: int) -> Units:
        """Each campaign's units; their gains have mean zero."""
        return self._draw(rng, n_campaigns, n_units, _SPREAD_LOG_SD)

    def _draw(self, rng: Generator, n_campaigns: int, n: int, spread_log_sd: float) -> Units:
        pair_sd = self.sd * np.sqrt(2) / np.sqrt(_TAIL_DF / (_TAIL_DF - 2))
        first, second = pair_sd * rng.standard_t(_TAIL_DF, (2, n_campaigns, n))
        walk = np.cumsum(self.sd * _WALK_SD * rng.standard_normal((n_campaigns, n)), axis=1)
        spread = np.exp(spread_log_sd * rng.standard_normal((n_campaigns, 1)))
        return Units(
            gains=spread * ((first - second) / 2 + walk), slots=spread * (first + second) / 2
        )
