"""Boundaries of the planned looks, by simulation with a fixed seed.

The error is spent in proportion to the units seen and split over the finalists a campaign may
confirm (Bonferroni); a quarter of it is kept back for what the simulated noise leaves out.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator

from infrarsi.contract.contract import Protocol
from infrarsi.stats.simulation import Noise
from infrarsi.stats.statistic import Floats, Units, at_look

INTERVAL_LEVEL = 0.95
_KEPT = 0.75
_N_SIMULATED = 200_000
_N_PARTS = 4
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


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How much there is to see of the noise, but for the number of units.

    `n_aa_slots` are those of the control's units whose slots were kept; `unit_slots` says
    whether the confirmation's units have theirs.
    """

    n_aa: int = 0
    n_aa_slots: int = 0
    unit_slots: bool = True


def seen_of(units: Units, control: Units) -> Seen:
    """What the boundaries must allow for with these."""
    return Seen(
        n_aa=control.gains.shape[1],
        n_aa_slots=control.slots.shape[1],
        unit_slots=units.slots.shape[1] > 0,
    )


def boundaries(protocol: Protocol, seen: Seen) -> Boundaries:
    """The boundaries of a protocol with so much to see of the noise; the first call simulates."""
    capped = Seen(
        n_aa=min(seen.n_aa, _MOST_AA),
        n_aa_slots=min(seen.n_aa_slots, _MOST_AA),
        unit_slots=seen.unit_slots,
    )
    looks = tuple(sorted(protocol.looks))
    return _simulate(looks, protocol.alpha / protocol.max_finalists, capped)


@lru_cache(maxsize=64)
def _simulate(looks: tuple[int, ...], alpha: float, seen: Seen) -> Boundaries:
    rng = np.random.default_rng(20_240_917)
    t = np.concatenate([_statistics(rng, looks, seen) for _ in range(_N_PARTS)], axis=1)
    return Boundaries(
        looks=looks,
        promote=_spend(t, looks, _KEPT * alpha),
        interval=_spend(np.abs(t), looks, _KEPT * (1 - INTERVAL_LEVEL)),
    )


def _statistics(rng: Generator, looks: tuple[int, ...], seen: Seen) -> Floats:
    """The statistic at each look of a part of the campaigns, shape (looks, campaigns)."""
    n_campaigns = _N_SIMULATED // _N_PARTS
    control = Noise().control(rng, n_campaigns, seen.n_aa)
    control = Units(gains=control.gains, slots=control.slots[:, : seen.n_aa_slots])
    units = Noise().confirmation(rng, n_campaigns, looks[-1])
    if not seen.unit_slots:
        units = Units(gains=units.gains, slots=units.slots[:, :0])
    return np.stack([at_look(units.first(n), control, 0.0).t(0.0) for n in looks])


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
