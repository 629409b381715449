"""Boundaries of the planned looks, by simulation with a fixed seed.

The error is spent in proportion to the units seen and split over the finalists a campaign may
confirm (Bonferroni); a quarter of it is kept back for what the simulated noise leaves out.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.stats.simulation import Noise
from infrarsi.stats.statistic import Floats, at_look

INTERVAL_LEVEL = 0.95
_KEPT = 0.75
_N_SIMULATED = 400_000
_MOST_AA = 16
"""More A/A units than this only make the boundaries of this many safer."""


@dataclass(frozen=True, kw_only=True)
class Boundaries:
    """One entry a look.

    A statistic above `promote` is a gain; `interval` is the half width, in standard errors, of a
    repeated confidence interval that holds at all looks together.
    """

    looks: tuple[int, ...]
    promote: tuple[float, ...]
    interval: tuple[float, ...]


def boundaries(protocol: Protocol, n_aa: int) -> Boundaries:
    """The boundaries of a protocol on a machine with `n_aa` A/A units; the first call simulates."""
    return _simulate(
        tuple(sorted(protocol.looks)), protocol.alpha / protocol.max_finalists, min(n_aa, _MOST_AA)
    )


@lru_cache(maxsize=64)
def _simulate(looks: tuple[int, ...], alpha: float, n_aa: int) -> Boundaries:
    rng = np.random.default_rng(20_240_917)
    noise = Noise()
    control = noise.control(rng, _N_SIMULATED, n_aa)
    units = noise.confirmation(rng, _N_SIMULATED, looks[-1])
    t = np.stack([at_look(units, n, control, n_aa, 0.0).t(0.0) for n in looks])
    return Boundaries(
        looks=looks,
        promote=_spend(t, looks, _KEPT * alpha),
        interval=_spend(np.abs(t), looks, _KEPT * (1 - INTERVAL_LEVEL)),
    )


def _spend(t: Floats, looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Bounds first crossed at look k by its share of alpha; `t` has shape (looks, campaigns)."""
    inside = np.ones(t.shape[1], dtype=bool)
    bounds: list[float] = []
    spent = 0.0
    for values, n in zip(t, looks, strict=True):
        share = alpha * n / looks[-1] - spent
        spent += share
        n_crossing = int(share * t.shape[1])
        ranked = np.sort(values[inside])
        bound = float(ranked[-n_crossing - 1]) if n_crossing < ranked.size else 0.0
        bounds.append(bound)
        inside &= values <= bound
    return tuple(bounds)
