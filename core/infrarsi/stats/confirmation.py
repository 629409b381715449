"""Decide on the confirmation units of one frozen candidate: the only source of a claimed gain.

H0: the mean log ratio is at most log(1 + min_gain). Looks are planned; a futility stop may end
a hopeless confirmation early and costs no error, since the boundaries do not count on it.
Leaves out running the units and choosing finalists.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.frozen import Frozen
from infrarsi.stats.boundaries import INTERVAL_LEVEL, boundaries, seen_of
from infrarsi.stats.look_rule import LookResult, apply_rule
from infrarsi.stats.noise import NoiseModel
from infrarsi.stats.statistic import Floats, Units, at_look


class Ratio(Frozen):
    """before/after with a repeated confidence interval: it holds at whichever look one stops."""

    ratio: float
    low: float
    high: float
    level: float = INTERVAL_LEVEL


class Decision(Frozen):
    """What the units so far say.

    promote: the gain is confirmed. continue: up to the next look. futile: more units will hardly
    show a gain. not_resolved: the last look was reached without an answer. Only where
    `gain_excluded` may one say "no gain"; else it is "not resolved". `speedup` is None before the
    first look.
    """

    kind: Literal["promote", "continue", "futile", "not_resolved"]
    n_units: int
    speedup: Ratio | None = None
    gain_excluded: bool = False


def decide(
    log_ratios: Sequence[float],
    noise: NoiseModel,
    protocol: Protocol,
    slots: Sequence[float] = (),
) -> Decision:
    """Judge the units at the latest planned look they reach.

    Args:
        log_ratios: one natural log of before/after a unit, in the order they were measured;
            units beyond the latest look reached are not used.
        noise: the A/A control of the same machine and contract.
        protocol: looks, alpha and the smallest gain that counts.
        slots: `Unit.slot_log_ratio` of the same units; without them more is asked of a gain.
    """
    units = Units(gains=_row(log_ratios), slots=_row(slots))
    control = Units(gains=_row(noise.log_ratios), slots=_row(noise.slots))
    plan = boundaries(protocol, seen_of(units, control))
    reached = [i for i, n in enumerate(plan.looks) if n <= len(log_ratios)]
    if not reached:
        return Decision(kind="continue", n_units=len(log_ratios))
    k = reached[-1]
    n = plan.looks[k]
    seen = at_look(units.first(n), control, noise.floor_sd)
    found = apply_rule(seen, math.log1p(protocol.min_gain_frac), k, plan)
    return Decision(
        kind=_kind(found, is_last=k == len(plan.looks) - 1),
        n_units=n,
        speedup=_speedup(float(seen.mean[0]), float(seen.error[0]), plan.interval[k]),
        gain_excluded=bool(found.gain_excluded[0]),
    )


def _kind(
    found: LookResult, *, is_last: bool
) -> Literal["promote", "continue", "futile", "not_resolved"]:
    if found.promote[0]:
        return "promote"
    if found.futile[0]:
        return "futile"
    return "not_resolved" if is_last else "continue"


def _speedup(mean: float, error: float, width: float) -> Ratio | None:
    if not math.isfinite(error):
        return None
    half = width * error
    return Ratio(ratio=math.exp(mean), low=_exp(mean - half), high=_exp(mean + half))


def _row(values: Sequence[float]) -> Floats:
    return np.asarray([values], dtype=np.float64).reshape(1, -1)


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
