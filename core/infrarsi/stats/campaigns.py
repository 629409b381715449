"""Many simulated confirmations at once, under the rule that real ones stand under.

What their noise is drawn from is given; `simulation` and `recorded` have such sources.
"""

import math
from typing import Protocol as Interface

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from infrarsi.contract.contract import Protocol
from infrarsi.stats.boundaries import boundaries, seen_of
from infrarsi.stats.look_rule import apply_rule
from infrarsi.stats.noise import FLOOR_SD
from infrarsi.stats.statistic import Units, at_look


class NoiseSource(Interface):
    """Units that differ by nothing; their gains have mean zero."""

    def control(self, rng: Generator, n_campaigns: int, n_aa: int) -> Units:
        """Each campaign's A/A units."""
        ...

    def confirmation(self, rng: Generator, n_campaigns: int, n_units: int) -> Units:
        """Each campaign's units of one finalist."""
        ...


def units_to_promote(
    units: Units, control: Units, protocol: Protocol, floor_sd: float = FLOOR_SD
) -> NDArray[np.int64]:
    """Confirm each campaign's units; after how many it is promoted, 0 where it is not.

    Args:
        units: looks beyond their number are not reached.
        control: the A/A units of the same campaigns.
        protocol: looks, alpha, finalists and the smallest gain that counts.
        floor_sd: as in `noise.NoiseModel`.
    """
    plan = boundaries(protocol, seen_of(units, control))
    target = math.log1p(protocol.min_gain_frac)
    promoted = np.zeros(len(units.gains), dtype=np.int64)
    going = np.ones(len(units.gains), dtype=bool)
    for k, n in enumerate(plan.looks):
        if n > units.gains.shape[1]:
            break
        found = apply_rule(at_look(units.first(n), control, floor_sd), target, k, plan)
        promoted[going & found.promote] = n
        going &= ~(found.promote | found.futile)
    return promoted
