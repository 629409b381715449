"""What one planned look says of a confirmation, for one campaign or for many at once.

The only rule by which anything is promoted: `confirmation.decide` applies it to the units that
were measured, `campaigns` to simulated ones, so that what is validated is what runs.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from infrarsi.stats.boundaries import Boundaries
from infrarsi.stats.statistic import AtLook, Floats

Flags = NDArray[np.bool_]

_HOPELESS = 0.05


@dataclass(frozen=True, kw_only=True)
class LookResult:
    """One entry a campaign; where neither flag is set the confirmation goes on, if it can.

    `gain_excluded` where the repeated interval lies below the smallest gain that counts.
    """

    promote: Flags
    futile: Flags
    gain_excluded: Flags


def apply_rule(seen: AtLook, target: float, k: int, plan: Boundaries) -> LookResult:
    """Judge what was seen at look `k` of the plan against a mean log ratio of `target`.

    An infinite standard error, where nothing tells of the noise, is neither promoted nor futile.
    """
    known = np.isfinite(seen.error)
    error = np.where(known, seen.error, 1.0)
    promote = known & (seen.mean - target > plan.promote[k] * error)
    excluded = known & (seen.mean + plan.interval[k] * error < target)
    hopeless = known & (_chance(seen.mean, error, target, k, plan) < _HOPELESS)
    return LookResult(
        promote=promote, futile=~promote & (excluded | hopeless), gain_excluded=excluded
    )


def _chance(mean: Floats, error: Floats, target: float, k: int, plan: Boundaries) -> Floats:
    """Predictive probability of crossing at the last look, the units seen being typical.

    One at the last look itself, where nothing more is to be predicted.
    """
    n, last = plan.looks[k], plan.looks[-1]
    if n == last:
        return np.ones_like(mean)
    needed = target + plan.promote[-1] * error * math.sqrt(n / last)
    spread = error * math.sqrt((last - n) / last)
    return np.asarray(norm.sf((needed - mean) / spread), dtype=np.float64)
