"""From kept lines to measures: medians, means, and paired differences with intervals."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from search.running import MARKS

Line = dict[str, Any]


def by_method(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Lines of each method."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(str(line["method"]), []).append(line)
    return found


def numbers(lines: list[Line]) -> dict[str, float]:
    """A method's measures: medians of regret over workloads and seeds, means of counts."""
    return {
        **{f"regret_{m}_pct": median(lines, f"regret_{m}_pct") for m in MARKS},
        **{f"mean_regret_{m}_pct": mean(lines, f"regret_{m}_pct") for m in MARKS},
        "oom_of_40": mean(lines, "oom"),
        "broken_of_40": mean(lines, "broken"),
        "ask_cpu_ms": mean(lines, "ask_cpu_ms"),
    }


def median(lines: list[Line], field: str) -> float:
    """The median of a field."""
    return float(np.median([float(line[field]) for line in lines]))


def mean(lines: list[Line], field: str) -> float:
    """The mean of a field."""
    return float(np.mean([float(line[field]) for line in lines]))


def paired(ours: list[Line], other: list[Line], field: str) -> tuple[float, float, float, int]:
    """Mean of (other - ours) over shared workload and seed, 95 % bootstrap interval, and pairs.

    Workloads are drawn, then seeds within them, since seeds of one workload are alike.
    """
    own = {(line["place"], line["seed"]): float(line[field]) for line in ours}
    groups: dict[Any, list[float]] = {}
    for line in other:
        place = (line["place"], line["seed"])
        if place in own:
            groups.setdefault(line["place"], []).append(float(line[field]) - own[place])
    if not groups:
        return (np.nan, np.nan, np.nan, 0)
    rng = np.random.default_rng(0)
    differences = list(groups.values())
    means = []
    for _ in range(2000):
        drawn = (differences[int(i)] for i in rng.integers(len(differences), size=len(differences)))
        means.append(np.mean([np.mean(rng.choice(d, len(d))) for d in drawn]))
    low, high = np.quantile(means, [0.025, 0.975])
    centre = float(np.mean([np.mean(d) for d in differences]))
    return centre, float(low), float(high), sum(map(len, differences))


def print_tables(lines: list[Line]) -> None:
    """Methods over all workloads, then ours by workload, then paired differences."""
    methods = by_method(lines)
    head = f"{'method':26} {'n':>4} {'regret 10/20/40 median':>23} {'mean':>23}"
    print(f"\n{head} {'oom':>5} {'broken':>6} {'ask ms':>7}")
    for name, own in methods.items():
        print(f"{name:26} {len(own):4} {row(numbers(own))}")
    if "ours" in methods:
        print_workloads(methods["ours"])
        print_pairs(methods)


def row(n: dict[str, float]) -> str:
    """A table row's numbers."""
    medians = " ".join(f"{n[f'regret_{m}_pct']:7.1f}" for m in MARKS)
    means = " ".join(f"{n[f'mean_regret_{m}_pct']:7.1f}" for m in MARKS)
    rest = f"{n['oom_of_40']:5.1f} {n['broken_of_40']:6.1f} {n['ask_cpu_ms']:7.0f}"
    return f"{medians} {means} {rest}"


def print_workloads(ours: list[Line]) -> None:
    """Ours by workload."""
    print("\nours by workload")
    for name in dict.fromkeys(str(line["place"]) for line in ours):
        own = [line for line in ours if line["place"] == name]
        print(f"{name:26} {len(own):4} {row(numbers(own))}")


def print_pairs(methods: dict[str, list[Line]]) -> None:
    """What each other method loses to ours, with intervals."""
    print("\nlost to ours, mean of paired differences [95 %]: regret 20, regret 40, out of memory")
    for name, other in methods.items():
        if name == "ours":
            continue
        cells = []
        for field in ("regret_20_pct", "regret_40_pct", "oom"):
            centre, low, high, _ = paired(methods["ours"], other, field)
            cells.append(f"{centre:7.1f} [{low:6.1f}, {high:6.1f}]")
        print(f"{name:26} " + "  ".join(cells))


def measures(lines: list[Line]) -> dict[str, float]:
    """What `build/bench/search.json` says of the simulator."""
    found: dict[str, float] = {}
    methods = by_method(lines)
    for name, own in methods.items():
        stem = name.replace("-", "_")
        for measure, value in numbers(own).items():
            found[f"{stem}.{measure}"] = value
        for field in ("regret_20_pct", "regret_40_pct", "oom"):
            if name != "ours" and "ours" in methods:
                centre, low, high, pairs = paired(methods["ours"], own, field)
                if pairs:
                    stemmed = f"{stem}.lost_{field}"
                    found |= {stemmed: centre, f"{stemmed}_low": low, f"{stemmed}_high": high}
    if "ours" in methods:
        own = numbers(methods["ours"])
        names = ("regret_10_pct", "regret_20_pct", "regret_40_pct", "oom_of_40", "broken_of_40")
        found = {n: own[n] for n in names} | found
    return found
