"""The statistic of a confirmation, for one campaign or for many at once.

    t = (mean - target) sqrt(n) / s,   s² = max(A/A pooled, A/A and units together, floor²)

so that a few units that agree by chance cannot look more certain than the A/A control allows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AtLook:
    """Mean log ratio and its standard error after the look's units, one entry a campaign.

    The error is infinite where neither A/A units nor a second unit tell of the noise.
    """

    mean: Floats
    error: Floats

    def t(self, target: float) -> Floats:
        """The statistic against a mean log ratio of `target`."""
        return (self.mean - target) / self.error


def at_look(units: Floats, n: int, aa_sum_squares: Floats, n_aa: int, floor_sd: float) -> AtLook:
    """Summarise the first `n` units.

    Args:
        units: log ratios, shape (n_campaigns, at least n).
        n: units seen at this look.
        aa_sum_squares: sum of squared A/A log ratios, shape (n_campaigns,).
        n_aa: A/A units in that sum.
        floor_sd: lower bound of the standard deviation; 0 for none.
    """
    seen = units[:, :n]
    mean = seen.mean(axis=1)
    squares = np.square(seen - mean[:, None]).sum(axis=1)
    freedom = n_aa + n - 1
    if freedom == 0:
        return AtLook(mean=mean, error=np.full_like(mean, np.inf))
    together = (aa_sum_squares + squares) / freedom
    pooled = aa_sum_squares / n_aa if n_aa else np.zeros_like(mean)
    variance = np.maximum(np.maximum(together, pooled), floor_sd**2)
    error = np.sqrt(variance / n)
    return AtLook(mean=mean, error=np.where(error > 0, error, np.inf))
