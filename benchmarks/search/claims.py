"""What sources claim about values: roughly true, by source biased, some wrong.

A claim is taken around the truth at a few random allowed settings, then bent by its source.
"""

import math
from typing import Any

import numpy as np

from search.workload import Knob, Setting, Workload

SOURCES = {"docs": (0.9, 0.02), "paper": (1.3, 0.03), "blog": (1.7, 0.06), "recipe": (1.0, 0.04)}
WRONG = 0.12
DRAWS = 9


def true_effect(
    w: Workload, knob: Knob, choice: Any, rng: np.random.Generator
) -> tuple[float, float]:
    """Median log speed-up and log growth of memory of a value against the baseline's.

    Counted whether or not the trials would survive; 0 where a setting is not allowed.
    """
    gains, growths = [], []
    for draw in range(DRAWS):
        setting = w.sample(rng) if draw else dict(w.baseline)
        one, other = setting | {knob.name: w.baseline[knob.name]}, setting | {knob.name: choice}
        gain = growth = 0.0
        if w.valid(one) is None and w.valid(other) is None:
            before, after = w.true_step(one), w.true_step(other)
            gain = math.log(before.seconds / after.seconds)
            growth = math.log(after.peak_gib / before.peak_gib)
        gains.append(gain)
        growths.append(growth)
    return float(np.median(gains)), float(np.mean(growths))


def memory_role(growth: float) -> str:
    """What a source says of a value's memory."""
    if growth > 0.02:
        return "hungry"
    return "saver" if growth < -0.02 else "neutral"


def make_claims(w: Workload, seed: int, flipped: bool = False) -> list[Setting]:
    """Claims of every patch and of most settings' values; `flipped` turns every sign of speed."""
    rng = np.random.default_rng([seed, 77])
    claims: list[Setting] = []
    for knob in w.knobs:
        if knob.kind == "parallelism" or (knob.kind == "setting" and rng.random() < 0.4):
            continue
        others = [choice for choice in knob.choices if choice != w.baseline[knob.name]]
        claims.extend(claim(w, knob, choice, rng, flipped) for choice in others)
    return claims


def claim(w: Workload, knob: Knob, choice: Any, rng: np.random.Generator, flipped: bool) -> Setting:
    """One source's claim of one value."""
    source = str(rng.choice(list(SOURCES)))
    bias, spread = SOURCES[source]
    gain, growth = true_effect(w, knob, choice, rng)
    told = bias * gain + float(rng.normal(0, spread))
    wrong = rng.random() < WRONG
    if wrong:
        told = float(rng.normal(0.05, 0.08))
    return {
        "knob": knob.name,
        "value": choice,
        "log_speedup": -told if flipped else told,
        "sd": max(0.02, 0.5 * abs(told)),
        "memory_role": "neutral" if wrong else memory_role(growth),
        "source": source,
    }
