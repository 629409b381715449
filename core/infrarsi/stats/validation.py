"""Validate the whole procedure: how often campaigns of no-gain finalists promote one.

Whole campaigns are simulated: an A/A control, up to three finalists with a true gain of exactly
the smallest that does not count, all looks of each, the first promotion ending the campaign.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from infrarsi.contract.contract import Protocol
from infrarsi.stats.campaigns import NoiseSource, units_to_promote


@dataclass(frozen=True, kw_only=True)
class FalsePromotions:
    """Campaigns that promoted a finalist that must not be, of how many."""

    n_false: int
    n_campaigns: int

    @property
    def rate(self) -> float:
        """Share of the campaigns."""
        return self.n_false / self.n_campaigns

    def upper_bound(self, level: float = 0.95) -> float:
        """One-sided Clopper-Pearson bound of the rate."""
        if self.n_false == self.n_campaigns:
            return 1.0
        return float(beta.ppf(level, self.n_false + 1, self.n_campaigns - self.n_false))


def simulate_campaigns(
    noise: NoiseSource, n_aa: int, protocol: Protocol, n_campaigns: int, seed: int
) -> FalsePromotions:
    """Run campaigns whose finalists gain exactly `min_gain_frac`.

    Args:
        noise: what units are drawn from.
        n_aa: A/A units each campaign measured before.
        protocol: looks, alpha, finalists.
        n_campaigns: at least 20,000 for a bound near 1 %.
        seed: another than the boundaries' own by construction of the streams.
    """
    rng = np.random.default_rng([seed, n_aa, n_campaigns])
    target = math.log1p(protocol.min_gain_frac)
    control = noise.control(rng, n_campaigns, n_aa)
    promoted = np.zeros(n_campaigns, dtype=bool)
    for _ in range(protocol.max_finalists):
        units = noise.confirmation(rng, n_campaigns, max(protocol.looks)).gaining(target)
        promoted |= units_to_promote(units, control, protocol) > 0
    return FalsePromotions(n_false=int(promoted.sum()), n_campaigns=n_campaigns)
