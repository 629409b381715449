"""Worlds made of recorded A/A process pairs: what a campaign on such a machine may meet.

A pair's log ratio is that of the side started first over the one started second: the sides of an
A/A pair differ in nothing else, so that both start orders are one sample, and units drawn from it
have a mean of exactly zero. A unit is half the difference of two pairs, as in `pair.Unit`.
Each world bends that sample in one way; none is told to the boundaries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.stats import t as student

from infrarsi.stats.statistic import Floats, Units

FEWEST_PAIRS = 8
_NORMAL_BY_MEDIAN = 1.4826


@dataclass(frozen=True, kw_only=True)
class World:
    """How a campaign's noise differs from the recorded pairs'.

    Scales are in the spread of those, by the median of their deviations.

    Attributes:
        tail_df: degrees of freedom of the scale mixture each pair's residual is multiplied by
            (as Student's t is a normal one's); None for no heavier tails than recorded.
        slot_walk: steps of a random walk, a pair, of how much slower the job started first is.
        slot_trend: standard deviation over campaigns of that slowness's linear trend, a pair.
        unit_walk: steps of a random walk, a unit, between the two sides themselves.
        unit_noise: standard deviation of what differs between the sides in a whole unit, in both
            start orders alike, so that slots do not show it.
        slot_factor_most: the recorded slowness of the job started first is multiplied by a factor
            drawn uniformly between 0 and this, one a campaign.
        slot_log_sd: and by a log-normal one, one a pair, so that units do not cancel it.
        spread_log_sd: log-normal factor between the spread of the control and of the confirmation.
    """

    tail_df: float | None = None
    slot_walk: float = 0.0
    slot_trend: float = 0.0
    unit_walk: float = 0.0
    unit_noise: float = 0.0
    slot_factor_most: float | None = None
    slot_log_sd: float = 0.0
    spread_log_sd: float = 0.0


WORLDS = {
    "bootstrap": World(),
    "heavy_tails": World(tail_df=3.0),
    "drift": World(slot_walk=0.3, slot_trend=0.05, unit_walk=0.1),
    "slot_bias": World(slot_factor_most=3.0, slot_log_sd=0.5),
    "changed_machine": World(spread_log_sd=0.25),
    "unlike_sides": World(unit_noise=0.5),
    "all_together": World(
        tail_df=4.0,
        slot_walk=0.2,
        slot_trend=0.03,
        unit_walk=0.1,
        unit_noise=0.2,
        slot_factor_most=2.0,
        slot_log_sd=0.3,
        spread_log_sd=0.2,
    ),
}


@dataclass(frozen=True, kw_only=True)
class RecordedNoise:
    """`campaigns.NoiseSource` of one world.

    `pairs` are log ratios of the side started first over the one started second, at least
    `FEWEST_PAIRS` of them.
    """

    pairs: tuple[float, ...]
    world: World = World()

    def control(self, rng: Generator, n_campaigns: int, n_aa: int) -> Units:
        """Each campaign's A/A units."""
        return self._units(rng, n_campaigns, n_aa, spread_log_sd=0.0)

    def confirmation(self, rng: Generator, n_campaigns: int, n_units: int) -> Units:
        """Each campaign's units; their gains have mean zero."""
        return self._units(rng, n_campaigns, n_units, self.world.spread_log_sd)

    def _units(self, rng: Generator, n_campaigns: int, n_units: int, spread_log_sd: float) -> Units:
        pairs = self._pairs(rng, n_campaigns, 2 * n_units)
        first, second = pairs[:, 0::2], pairs[:, 1::2]
        unit_sd = self._sd() / np.sqrt(2)
        walk = np.cumsum(self.world.unit_walk * rng.standard_normal(first.shape), axis=1)
        apart = self.world.unit_noise * rng.standard_normal(first.shape)
        spread = np.exp(spread_log_sd * rng.standard_normal((n_campaigns, 1)))
        gains = (first - second) / 2 + unit_sd * (walk + apart)
        return Units(gains=spread * gains, slots=spread * (first + second) / 2)

    def _pairs(self, rng: Generator, n_campaigns: int, n_pairs: int) -> Floats:
        """Log ratios of the side started first, shape (n_campaigns, n_pairs)."""
        shape, world, sd = (n_campaigns, n_pairs), self.world, self._sd()
        slot = float(np.mean(self.pairs))
        residuals = rng.choice(np.asarray(self.pairs) - slot, shape)
        if world.tail_df is not None:
            residuals *= _tails(rng, world.tail_df, shape)
        slots = np.full((n_campaigns, 1), slot)
        if world.slot_factor_most is not None:
            slots = slots * rng.uniform(0.0, world.slot_factor_most, (n_campaigns, 1))
        slots = slots * np.exp(world.slot_log_sd * rng.standard_normal(shape))
        trend = world.slot_trend * rng.standard_normal((n_campaigns, 1)) * np.arange(n_pairs)
        walk = np.cumsum(world.slot_walk * rng.standard_normal(shape), axis=1)
        return slots + residuals + sd * (trend + walk)

    def _sd(self) -> float:
        """Of ordinary pairs: a few that stray far do not count, where most do not."""
        off = np.abs(np.asarray(self.pairs) - np.median(self.pairs))
        return float(_NORMAL_BY_MEDIAN * np.median(off))


def _tails(rng: Generator, df: float, shape: tuple[int, ...]) -> Floats:
    return np.sqrt(df / rng.chisquare(df, shape))


@dataclass(frozen=True, kw_only=True)
class Centre:
    """A mean log ratio with its interval."""

    mean: float
    low: float
    high: float
    n: int


def centre(log_ratios: Sequence[float], level: float = 0.95) -> Centre:
    """Mean of at least two log ratios with Student's interval."""
    values = np.asarray(log_ratios, dtype=np.float64)
    mean, n = float(values.mean()), values.size
    half = float(student.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Centre(mean=mean, low=mean - half, high=mean + half, n=n)
