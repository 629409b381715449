"""The statistic of a confirmation, for one campaign or for many at once.

A unit's two process pairs give two numbers. Half the sum of their log ratios is its *gain*. Half
their difference is its *slot*, how much slower the job started first is; it holds no gain, and
what it varies by from unit to unit is the same noise of pairs that the gain has, or more where
that slowness itself varies. So both tell of the noise:

    t = (mean gain - target) sqrt(n) / s,   s² = max(A/A gains, all gains, gains and slots, floor²)

with the control's gains about zero, the confirmation's about their mean, and all slots about
theirs. A few units that agree by chance cannot look more certain than the rest allows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Units:
    """Units of many campaigns, natural logs, shape (n_campaigns, n_units) each.

    `slots` may have no columns, or fewer than `gains`, where they were not kept.
    """

    gains: Floats
    slots: Floats

    def first(self, n: int) -> "Units":
        """The first `n` units of each campaign."""
        return Units(gains=self.gains[:, :n], slots=self.slots[:, :n])

    def gaining(self, log_ratio: float) -> "Units":
        """The same noise with a true gain added."""
        return Units(gains=self.gains + log_ratio, slots=self.slots)


@dataclass(frozen=True, kw_only=True)
class AtLook:
    """Mean log ratio and its standard error after the look's units, one entry a campaign.

    The error is infinite where nothing tells of the noise.
    """

    mean: Floats
    error: Floats

    def t(self, target: float) -> Floats:
        """The statistic against a mean log ratio of `target`."""
        return (self.mean - target) / self.error


def at_look(units: Units, control: Units, floor_sd: float) -> AtLook:
    """Summarise the units seen at a look.

    Args:
        units: those the look has seen, and no others.
        control: the A/A units of the same campaigns.
        floor_sd: lower bound of the standard deviation; 0 for none.
    """
    n, n_aa = units.gains.shape[1], control.gains.shape[1]
    mean = units.gains.mean(axis=1)
    of_control = np.square(control.gains).sum(axis=1)
    of_gains = of_control + _about_mean(units.gains)
    slots = np.concatenate([control.slots, units.slots], axis=1)
    of_all = of_gains + _about_mean(slots)
    n_free = n_aa + n - 1
    n_free_of_all = n_free + max(0, slots.shape[1] - 1)
    variance = np.full_like(mean, floor_sd**2)
    for squares, freedom in (
        (of_control, n_aa),
        (of_gains, n_free),
        (of_all, n_free_of_all),
    ):
        if freedom > 0:
            variance = np.maximum(variance, squares / freedom)
    known = (variance > 0) & (n_free_of_all > 0)
    return AtLook(mean=mean, error=np.where(known, np.sqrt(variance / n), np.inf))


def _about_mean(values: Floats) -> Floats:
    """Sum of squares about each campaign's mean; zero where there is nothing."""
    if values.shape[1] == 0:
        return np.zeros(len(values))
    return np.square(values - values.mean(axis=1, keepdims=True)).sum(axis=1)
