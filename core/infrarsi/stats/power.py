"""What a budget can resolve: the smallest gain confirmed in 80 of 100 tries."""

import math

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.stats.boundaries import boundaries
from infrarsi.stats.noise import NoiseModel
from infrarsi.stats.simulation import Noise
from infrarsi.stats.statistic import at_look

POWER = 0.8
_N_SIMULATED = 20_000


def resolvable(
    noise: NoiseModel, unit_cost_s: float, minutes: float, protocol: Protocol
) -> float | None:
    """The gain (before/after minus 1) that units of `minutes` confirm with 80 % power.

    Each simulated campaign has a gain from which on some affordable look promotes it; the
    answer is the quantile of those. None where no look is affordable or the noise is unmeasured.
    """
    sd = noise.sd
    plan = boundaries(protocol, noise.n_aa)
    n_affordable = int(minutes * 60 / unit_cost_s)
    looks = [(n, b) for n, b in zip(plan.looks, plan.promote, strict=True) if n <= n_affordable]
    if sd is None or not looks:
        return None
    rng = np.random.default_rng(7)
    units = Noise(sd=sd).confirmation(rng, _N_SIMULATED, plan.looks[-1])
    control = np.full(_N_SIMULATED, noise.sum_squares)
    needed = np.full(_N_SIMULATED, np.inf)
    for n, bound in looks:
        seen = at_look(units, n, control, noise.n_aa, noise.floor_sd)
        needed = np.minimum(needed, bound * seen.error - seen.mean)
    quantile = float(np.quantile(needed, POWER))
    return math.expm1(quantile + math.log1p(protocol.min_gain_frac))
