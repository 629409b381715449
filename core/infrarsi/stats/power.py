"""What a budget can resolve: how surely a gain is confirmed, and the smallest that is.

Futility stops count: a gain given up on too early is not confirmed.
"""

import math
from collections.abc import Sequence

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.stats.campaigns import NoiseSource, units_to_promote
from infrarsi.stats.noise import FLOOR_SD, NoiseModel
from infrarsi.stats.simulation import Noise
from infrarsi.stats.statistic import Units

POWER = 0.8
LARGEST_GAIN_FRAC = 99.0
"""A gain that would have to be larger than this is not looked for."""

_N_SIMULATED = 20_000
_PRECISION = 1e-5


def resolvable(
    noise: NoiseModel, unit_cost_s: float, minutes: float, protocol: Protocol
) -> float | None:
    """The gain (before/after minus 1) that units of `minutes` confirm with 80 % power.

    None where no look is affordable, the noise is unmeasured, or no gain would do.
    """
    sd = noise.sd
    n_units = min(int(minutes * 60 / unit_cost_s), max(protocol.looks))
    if sd is None or n_units < min(protocol.looks):
        return None
    units = Noise(sd=sd).confirmation(np.random.default_rng(7), _N_SIMULATED, n_units)
    control = Units(
        gains=np.tile(noise.log_ratios, (_N_SIMULATED, 1)),
        slots=np.tile(noise.slots, (_N_SIMULATED, 1)),
    )
    return _smallest(units, control, protocol, noise.floor_sd, POWER)


def promotion_chances(
    noise: NoiseSource,
    n_aa: int,
    protocol: Protocol,
    n_units: int,
    gains_frac: Sequence[float],
    n_campaigns: int = _N_SIMULATED,
    seed: int = 0,
) -> tuple[float, ...]:
    """For each true gain, the share of confirmations of at most `n_units` units that promote it."""
    units, control = _draw(noise, n_aa, n_units, n_campaigns, seed)
    return tuple(
        float(np.mean(units_to_promote(units.gaining(math.log1p(gain)), control, protocol) > 0))
        for gain in gains_frac
    )


def smallest_gain(
    noise: NoiseSource,
    n_aa: int,
    protocol: Protocol,
    n_units: int,
    power: float,
    n_campaigns: int = _N_SIMULATED,
    seed: int = 0,
) -> float | None:
    """The smallest true gain that at most `n_units` units promote in that share of tries.

    None where none below `LARGEST_GAIN_FRAC` is.
    """
    units, control = _draw(noise, n_aa, n_units, n_campaigns, seed)
    return _smallest(units, control, protocol, FLOOR_SD, power)


def _draw(
    noise: NoiseSource, n_aa: int, n_units: int, n_campaigns: int, seed: int
) -> tuple[Units, Units]:
    rng = np.random.default_rng([seed, n_aa, n_units, n_campaigns])
    return noise.confirmation(rng, n_campaigns, n_units), noise.control(rng, n_campaigns, n_aa)


def _smallest(
    units: Units, control: Units, protocol: Protocol, floor_sd: float, power: float
) -> float | None:
    """Bisection: with the noise held fixed, no campaign promotes a gain but not a larger one."""

    def suffices(log_gain: float) -> bool:
        n = units_to_promote(units.gaining(log_gain), control, protocol, floor_sd)
        return float(np.mean(n > 0)) >= power

    low, high = 0.0, math.log1p(LARGEST_GAIN_FRAC)
    if not suffices(high):
        return None
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return math.expm1(high)
