"""Runs the recorded tables, a line each, and sums them up."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from search.recorded import makers, memory_cases, tables, trials_needed

Line = dict[str, Any]
METHODS = ("ours", "ours-memory-8", "random", "optuna-tpe", "optuna-tpe-penalised")


def names() -> list[str]:
    """The tables' names."""
    return [table.name for table in tables()]


def run_recorded(place: str, name: str, seed: int) -> Line:
    """A method's line on a fresh table; `ours-memory-8` judges `predict` instead."""
    table = next(t for t in tables() if t.name == place)
    line: Line = {"place": place, "method": name, "seed": seed}
    if name == "ours-memory-8":
        return line | {"cases": memory_cases(table, seed)}
    needed = trials_needed(table, makers()[name], seed)
    print(f"{place:18} {name:22} {seed:3} {needed:4} of {len(table.rows)} rows", flush=True)
    return line | {"trials": needed, "rows": len(table.rows)}


def recorded_measures(lines: Sequence[Line]) -> dict[str, float]:
    """Ratios of trials and errors of memory."""
    return {**trial_measures(lines), **memory_measures(lines)}


def mean_trials(lines: Sequence[Line], method: str) -> dict[str, float]:
    """Mean trials needed by table."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if line["method"] == method:
            found.setdefault(str(line["place"]), []).append(float(line["trials"]))
    return {table: float(np.mean(trials)) for table, trials in found.items()}


def trial_measures(lines: Sequence[Line]) -> dict[str, float]:
    """Median over tables of ours' mean trials over a peer's, and each method's mean."""
    ours = mean_trials(lines, "ours")
    found: dict[str, float] = {}
    for name in dict.fromkeys(str(line["method"]) for line in lines):
        if name == "ours-memory-8":
            continue
        other = mean_trials(lines, name)
        found[f"nanotron.{name.replace('-', '_')}.mean_trials"] = float(
            np.mean(list(other.values()))
        )
        shared = sorted(set(ours) & set(other))
        if name != "ours" and shared:
            ratios = [ours[table] / other[table] for table in shared]
            found[f"nanotron.ratio_to_{name.replace('-', '_')}"] = float(np.median(ratios))
    if "nanotron.ratio_to_optuna_tpe" in found:
        found["nanotron_trials_ratio"] = found["nanotron.ratio_to_optuna_tpe"]
    return found


def print_memory_errors(lines: Sequence[Line]) -> None:
    """Where memory is told wrongly: median signed and 95th percentile error by table and value."""
    groups: dict[str, list[float]] = {}
    for line in lines:
        for case in line.get("cases", ()):
            if case["status"] == "ok" and case["told_gib"] is not None:
                error = 100 * (case["told_gib"] / case["peak_gib"] - 1)
                values = [f"{name}={value}" for name, value in case["setting"].items()]
                for group in [str(line["place"]), *values]:
                    groups.setdefault(group, []).append(error)
    print("\nmemory after 8 trials: error % (median, median of sizes, 95th percentile of sizes)")
    for group in sorted(groups, key=natural):
        errors, sizes = groups[group], np.abs(groups[group])
        spread = f"{np.median(sizes):6.1f} {np.quantile(sizes, 0.95):6.1f}"
        print(f"{group:24} {len(errors):6} {np.median(errors):6.1f} {spread}")


def natural(text: str) -> tuple[str, int]:
    """A key that sorts trailing numbers as numbers."""
    stem = text.rstrip("0123456789")
    return stem, int(text[len(stem) :] or 0)


def memory_measures(lines: Sequence[Line]) -> dict[str, float]:
    """Errors of memory, and fit or no fit near the ceiling, after 8 trials."""
    cases = [case for line in lines if line["method"] == "ours-memory-8" for case in line["cases"]]
    if not cases:
        return {}
    ran = [c for c in cases if c["status"] == "ok"]
    told = [c for c in ran if c["told_gib"] is not None]
    errors = [abs(c["told_gib"] / c["peak_gib"] - 1) * 100 for c in told]
    covered = [c["low"] <= c["peak_gib"] <= c["high"] for c in told]
    near = [c for c in cases if c["near"]]
    oom = [c["p_fit"] < 0.5 for c in near if c["status"] == "oom"]
    fit = [c["p_fit"] < 0.5 for c in near if c["status"] == "ok"]
    seeds = {line["seed"] for line in lines if line["method"] == "ours-memory-8"}
    return {
        "memory_error_median_pct": float(np.median(errors)) if errors else math.nan,
        "memory_error_p95_pct": float(np.quantile(errors, 0.95)) if errors else math.nan,
        "memory_covered_90_pct": 100 * float(np.mean(covered)),
        "memory_untold_pct": 100 * (1 - len(told) / len(ran)),
        "oom_recall_pct": 100 * float(np.mean(oom)),
        "oom_false_alarm_pct": 100 * float(np.mean(fit)),
        "oom_near_cases_a_seed": len(near) / len(seeds),
    }
