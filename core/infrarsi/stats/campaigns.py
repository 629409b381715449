"""Many simulated confirmations at once, under the rule that real ones stand under.

What their noise is drawn from is given; `simulation` and `recorded` have such sources.
"""

import math
from typing import Protocol as Interface

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from infrarsi.contract.contract import Protocol
from infrarsi.stats.boundaries import boundaries
from infrarsi.stats.look_rule import apply_rule
from infrarsi.stats.noise import FLOOR_SD
from infrarsi.stats.statistic import Floats, at_look


class NoiseSource(Interface):
    """Log ratios of units that differ by nothing; their mean is zero."""

    def control(self, rng: Generator, n_campaigns: int, n_aa: int) -> Floats:
        """Sum of squares of each campaign's A/A units, shape (n_campaigns,)."""
        ...

    def confirmation(self, rng: Generator, n_campaigns: int, n_units: int) -> Floats:
        """Log ratios of each campaign's units, shape (n_campaigns, n_units)."""
        ...


def units_to_promote(
    log_ratios: Floats,
    aa_sum_squares: Floats,
    n_aa: int,
    protocol: Protocol,
    floor_sd: float = FLOOR_SD,
) -> NDArray[np.int64]:
    """Confirm each campaign's units; after how many it is promoted, 0 where it is not.

    Args:
        log_ratios: shape (n_campaigns, n_units); looks beyond `n_units` are not reached.
        aa_sum_squares: sum of squared log ratios of each campaign's A/A units.
        n_aa: A/A units in that sum.
        protocol: looks, alpha, finalists and the smallest gain that counts.
        floor_sd: as in `noise.NoiseModel`.
    """
    plan = boundaries(protocol, n_aa)
    target = math.log1p(protocol.min_gain_frac)
    promoted = np.zeros(len(log_ratios), dtype=np.int64)
    going = np.ones(len(log_ratios), dtype=bool)
    for k, n in enumerate(plan.looks):
        if n > log_ratios.shape[1]:
            break
        seen = at_look(log_ratios, n, aa_sum_squares, n_aa, floor_sd)
        found = apply_rule(seen, target, k, plan)
        promoted[going & found.promote] = n
        going &= ~(found.promote | found.futile)
    return promoted
