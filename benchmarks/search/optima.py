"""The true optimum of every workload, found on the noiseless simulator and kept as data.

For every layout a descent over single changes, then over pairs for the best of them; a digest of
what the simulator answers says whether the kept file is still its own.
"""

import hashlib
import json
import math
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from search.mixtures import all_workloads
from search.workload import LAYOUT, Setting, Workload, fate

HERE = Path(__file__).parent
FILE = HERE / "data" / "optima.json"


@cache
def digest() -> str:
    """Of what the simulator answers: spaces, jobs and the fate of random settings."""
    text: list[str] = []
    for w in all_workloads().values():
        rng = np.random.default_rng(1)
        text.append(json.dumps([w.space, w.job, w.baseline, w.noise, w.says_memory]))
        for _ in range(60):
            setting = w.sample(rng)
            step = w.true_step(setting)
            text.append(f"{step.seconds:.9e} {step.peak_gib:.9e} {w.fate(setting)}")
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


@cache
def optimum(name: str) -> tuple[Setting, float]:
    """The best setting known of a workload and its noiseless seconds."""
    kept = json.loads(FILE.read_text("utf-8"))
    if kept["digest"] != digest():
        raise RuntimeError("data/optima.json is of another simulator: python -m search.optima")
    best = kept["optima"][name]
    return best["setting"], best["seconds"]


def cost(w: Workload, setting: Setting) -> float:
    """Noiseless seconds; far beyond any where the trial would not survive, but with a slope."""
    c = w.config(setting)
    if w.valid(setting) is not None:
        return math.inf
    step = w.true_step(setting)
    ends = fate(w, c, step)
    if ends == "ok":
        return step.seconds
    over = max(0.0, step.peak_gib / w.device.capacity_gib - 1)
    return 1e3 * (1 + over) * w.limit_s + step.seconds


def descend(w: Workload, start: Setting) -> tuple[float, Setting]:
    """The end of the best single changes, the layout kept."""
    best, value = dict(start), cost(w, start)
    free = [k for k in w.knobs if k.own not in LAYOUT]
    improved = True
    while improved:
        improved = False
        for k in free:
            for choice in k.choices:
                trial = best | {k.name: choice}
                got = cost(w, trial)
                if got < value - 1e-12:
                    best, value, improved = trial, got, True
    return value, best


def pair_descend(w: Workload, start: Setting, layouts: bool) -> tuple[float, Setting]:
    """The end of single and double changes, and of changed layouts with one other change."""
    value, best = descend(w, start)
    while True:
        moves = [{k.name: x} for k in w.knobs if k.own not in LAYOUT for x in k.choices]
        singles = [m for m in moves if best[next(iter(m))] != next(iter(m.values()))]
        doubles = [a | b for a, b in combinations(singles, 2) if a.keys() != b.keys()]
        if layouts:
            doubles += [p | m for p in w.layouts for m in [*singles, {}]]
        got, trial = min(((cost(w, best | m), best | m) for m in doubles), key=lambda pair: pair[0])
        if got >= value - 1e-12:
            return value, best
        value, best = descend(w, trial)


def find(w: Workload) -> tuple[float, Setting]:
    """The strongest search here: every layout, random starts, then pairs from the best ends."""
    rng = np.random.default_rng(0)
    ends: list[tuple[float, Setting]] = []
    for layout in w.layouts:
        ends.append(descend(w, w.baseline | layout))
        starts = (w.sample(rng) | layout for _ in range(1 if len(w.layouts) > 100 else 6))
        ends.extend(descend(w, start) for start in starts)
    ends.sort(key=lambda pair: pair[0])
    return min((pair_descend(w, s, i < 2) for i, (_, s) in enumerate(ends[:8])), key=lambda p: p[0])


def main() -> None:
    """Find and keep every optimum."""
    optima = {}
    for name, w in all_workloads().items():
        seconds, setting = find(w)
        optima[name] = {"seconds": seconds, "setting": setting}
        gain = w.true_step(w.baseline).seconds / seconds
        peak = w.true_step(setting).peak_gib / w.device.capacity_gib
        print(
            f"{name}: {seconds:.4f} s, {gain:.2f} times the baseline, {peak:.0%} full", flush=True
        )
    FILE.write_text(json.dumps({"digest": digest(), "optima": optima}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
