"""Prices: what one value of a knob costs or saves, the rest being as in the baseline."""

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

    `{"knob", "value", "time_frac", "mem_frac", "time_ms", "mem_gib", "n_trials"}`: what is added
    to the baseline's step time and to its memory above the base, as fractions, ms and GiB
    (negative saves), each with value, low and high at 90 %, or None before anything is known;
    `n_trials` are trials with that value that told of it.
    """
    changes = [(k.name, v) for k in space.knobs for v in k.choices if v != space.baseline[k.name]]
    if not changes:
        return []
    start = space.start[None, :]
    times = beliefs.step_time.effects(changes) if beliefs.step_time else None
    peaks = beliefs.memory.effects(changes) if beliefs.memory else None
    step_ms = 1e3 * beliefs.step_time.predict(start).value[0] if beliefs.step_time else 0.0
    above = beliefs.memory.predict(start).value[0] if beliefs.memory else 0.0
    above -= beliefs.memory.columns.base_gib if beliefs.memory else 0.0
    return [
        {
            "knob": name,
            "value": value,
            "time_frac": _scaled(times[i], 1.0) if times else None,
            "mem_frac": _scaled(peaks[i], 1.0) if peaks else None,
            "time_ms": _scaled(times[i], float(step_ms)) if times else None,
            "mem_gib": _scaled(peaks[i], float(above)) if peaks else None,
            "n_trials": _n_trials(told, name, value),
        }
        for i, (name, value) in enumerate(changes)
    ]


def _scaled(effect: Effect, unit: float) -> dict[str, float]:
    return {
        "value": unit * math.expm1(effect.mean),
        "low": unit * math.expm1(effect.mean - Z * effect.sd),
        "high": unit * math.expm1(effect.mean + Z * effect.sd),
    }


def _n_trials(told: Sequence[Told], name: str, value: Scalar) -> int:
    return sum(t.setting[name] == value for t in told if t.status in ("ok", "oom", "nan"))
