"""Prices: what one value of a knob costs or saves, the rest being equal."""

import math
from collections.abc import Sequence
from typing import Any

from infrarsi.frozen import Scalar
from infrarsi.models.prediction import Effect, Z
from infrarsi.search.beliefs import Beliefs
from infrarsi.search.outcomes import Told
from infrarsi.search.space import SearchSpace


def price_all(space: SearchSpace, told: Sequence[Told], beliefs: Beliefs) -> list[dict[str, Any]]:
    """One entry for every value but the baseline's.

    `{"knob", "value", "time_frac", "mem_frac", "n_trials"}`: fractions added to the step time
    and to the memory above the base (negative saves), each with value, low and high at 90 %, or
    None before anything was measured; `n_trials` are trials with that value that told of it.
    """
    changes = [(k.name, v) for k in space.knobs for v in k.choices if v != space.baseline[k.name]]
    if not changes:
        return []
    times = beliefs.step_time.effects(changes) if beliefs.step_time else None
    peaks = beliefs.memory.effects(changes) if beliefs.memory else None
    return [
        {
            "knob": name,
            "value": value,
            "time_frac": _fraction(times[i]) if times else None,
            "mem_frac": _fraction(peaks[i]) if peaks else None,
            "n_trials": _n_trials(told, name, value),
        }
        for i, (name, value) in enumerate(changes)
    ]


def _fraction(effect: Effect) -> dict[str, float]:
    return {
        "value": math.expm1(effect.mean),
        "low": math.expm1(effect.mean - Z * effect.sd),
        "high": math.expm1(effect.mean + Z * effect.sd),
    }


def _n_trials(told: Sequence[Told], name: str, value: Scalar) -> int:
    return sum(t.setting[name] == value for t in told if t.status in ("ok", "oom", "nan"))
