"""Decide on the confirmation units of one frozen candidate: the only source of a claimed gain.

H0: the mean log ratio is at most log(1 + min_gain). Looks are planned; a futility stop may end
a hopeless confirmation early and costs no error, since the boundaries do not count on it.
Leaves out running the units and choosing finalists.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.stats import norm

from infrarsi.contract.contract import Protocol
from infrarsi.frozen import Frozen
from infrarsi.stats.boundaries import INTERVAL_LEVEL, Boundaries, boundaries
from infrarsi.stats.noise import NoiseModel
from infrarsi.stats.statistic import at_look

_HOPELESS = 0.05


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


def decide(log_ratios: Sequence[float], noise: NoiseModel, protocol: Protocol) -> Decision:
    """Judge the units at the latest planned look they reach.

    Args:
        log_ratios: one natural log of before/after a unit, in the order they were measured;
            units beyond the latest look reached are not used.
        noise: the A/A control of the same machine and contract.
        protocol: looks, alpha and the smallest gain that counts.
    """
    plan = boundaries(protocol, noise.n_aa)
    reached = [i for i, n in enumerate(plan.looks) if n <= len(log_ratios)]
    if not reached:
        return Decision(kind="continue", n_units=len(log_ratios))
    k = reached[-1]
    n = plan.looks[k]
    units = np.asarray([log_ratios[:n]], dtype=np.float64)
    seen = at_look(units, n, np.array([noise.sum_squares]), noise.n_aa, noise.floor_sd)
    mean, error = float(seen.mean[0]), float(seen.error[0])
    target = math.log1p(protocol.min_gain_frac)
    if not math.isfinite(error):
        return Decision(kind=_unknown(k, plan), n_units=n)
    half = plan.interval[k] * error
    speedup = Ratio(ratio=math.exp(mean), low=_exp(mean - half), high=_exp(mean + half))
    return Decision(
        kind=_kind(mean, error, target, k, plan),
        n_units=n,
        speedup=speedup,
        gain_excluded=mean + half < target,
    )


def _kind(
    mean: float, error: float, target: float, k: int, plan: Boundaries
) -> Literal["promote", "continue", "futile", "not_resolved"]:
    if mean - target > plan.promote[k] * error:
        return "promote"
    if mean + plan.interval[k] * error < target:
        return "futile"
    if k == len(plan.looks) - 1:
        return "not_resolved"
    return "futile" if _chance(mean, error, target, k, plan) < _HOPELESS else "continue"


def _chance(mean: float, error: float, target: float, k: int, plan: Boundaries) -> float:
    """Predictive probability of crossing at the last look, the units seen being typical."""
    n, last = plan.looks[k], plan.looks[-1]
    needed = target + plan.promote[-1] * error * math.sqrt(n / last)
    spread = error * math.sqrt((last - n) / last)
    return float(norm.sf((needed - mean) / spread))


def _unknown(k: int, plan: Boundaries) -> Literal["continue", "not_resolved"]:
    return "not_resolved" if k == len(plan.looks) - 1 else "continue"


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
