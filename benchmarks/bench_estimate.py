"""How true estimates are for jobs of sources left out: build/bench/estimate.json.

Every source family is left out in turn: coefficients and intervals come from the others. Errors are
|estimate / observed - 1| in the basis the source measured in. A source of n configurations weighs
sqrt(n) in the headline (nanotron alone has 1,100), beside pooled figures and a table by source.
Fit or not is judged by `p_fit` at one half: on failures that sources report, and apart from them on
failures that arithmetic infers.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from estimate_baselines import accelerate_gib, deepspeed_gib, six_n_gib, six_n_s
from estimate_fit import weighted_quantile
from estimate_folds import MEMORY, TIME, Fitting, Kind, observed_runs, spread_features
from estimate_rows import Run, load_runs
from measures import write_measures

from infrarsi.estimate import Job
from infrarsi.estimate.calibration import Spread, Table, read_table
from infrarsi.estimate.estimating import HIGH, LOW, peak_memory, told_basis

GIB = 1 << 30
Peers = dict[str, Callable[[Job], float]]
MEMORY_PEERS: Peers = {
    "deepspeed": deepspeed_gib,
    "accelerate": accelerate_gib,
    "six_n_plus": six_n_gib,
}
TIME_PEERS: Peers = {"six_n_plus": six_n_s}


class LeftOut:
    """Errors and intervals of one kind with every source left out."""

    def __init__(self, kind: Kind, runs: Sequence[Run]) -> None:
        """Fit once for each source left out, and once for each model."""
        self.kind = kind
        self.fitting = Fitting(kind, observed_runs(kind, runs))
        self.runs = self.fitting.runs
        self.errors, found = self.fitting.left_out(self.fitting.sources)
        self.by_model, _ = self.fitting.left_out(self.fitting.groups())
        self.sources = np.array(self.fitting.sources)
        self.tables = {name: self._table(name, table) for name, table in found.items()}
        self.any_other = read_table(
            self.fitting.table() | {"spread": self.fitting.spread([self.errors, self.by_model])}
        )

    def covered(self, errors: np.ndarray, shipped: bool = False) -> np.ndarray:
        """Whether each observation lies in its interval, by the spread of the other sources.

        With `shipped`, by the spread of all sources: as for a new model of a source that is known.
        """
        inside = []
        for run, error in zip(self.fitting.runs, errors, strict=True):
            table = self.any_other if shipped else self.tables[run.source]
            features = spread_features(self.kind, run, table)
            inside.append(_within(table.spread, features, error))
        return np.array(inside)

    def table_for(self, source: str) -> Table:
        """The table that learned nothing from that source."""
        return self.tables.get(source, self.any_other)

    def _table(self, source: str, table: dict) -> Table:
        spread = self.fitting.spread([self.errors, self.by_model], self.sources == source)
        return read_table(table | {"spread": spread})


def _within(spread: Spread, features: dict[str, float], error: float) -> bool:
    return spread.quantile(LOW, features) <= error <= spread.quantile(HIGH, features)


def percent(log_errors: np.ndarray) -> np.ndarray:
    """|estimate / observed - 1| in percent, of log(observed / estimate)."""
    return 100 * np.abs(np.expm1(-log_errors))


def figures(name: str, left: LeftOut) -> dict[str, float]:
    """The measures of one kind."""
    weights = np.array([1 / np.sqrt(np.sum(left.sources == s)) for s in left.sources])
    equal = np.array([1 / np.sum(left.sources == s) for s in left.sources])
    errors, inside = percent(left.errors), left.covered(left.errors)
    seen, seen_inside = percent(left.by_model), left.covered(left.by_model, shipped=True)
    return {
        f"estimate_{name}_error_median_pct": weighted_quantile(errors, weights, 0.5),
        f"estimate_{name}_error_p95_pct": weighted_quantile(errors, weights, 0.95),
        f"estimate_{name}_error_median_pooled_pct": float(np.median(errors)),
        f"estimate_{name}_error_p95_pooled_pct": float(np.quantile(errors, 0.95)),
        f"estimate_{name}_error_median_equal_sources_pct": weighted_quantile(errors, equal, 0.5),
        f"estimate_{name}_error_median_model_left_out_pct": weighted_quantile(seen, weights, 0.5),
        f"estimate_{name}_error_median_model_left_out_pooled_pct": float(np.median(seen)),
        f"estimate_{name}_interval_coverage_pct": 100 * float(np.average(inside, weights=weights)),
        f"estimate_{name}_interval_coverage_pooled_pct": 100 * float(np.mean(inside)),
        f"estimate_{name}_interval_coverage_model_left_out_pct": 100 * float(np.mean(seen_inside)),
        f"estimate_{name}_configurations": float(len(errors)),
    }


def peer_figures(name: str, left: LeftOut, peers: Peers, unit: float) -> dict[str, float]:
    """The same errors of the estimators that people use today."""
    weights = np.array([1 / np.sqrt(np.sum(left.sources == s)) for s in left.sources])
    found: dict[str, float] = {}
    for peer, estimator in peers.items():
        guessed = np.log([estimator(run.job) * unit for run in left.fitting.runs])
        errors = percent(left.fitting.log_observed - guessed)
        found[f"{peer}_{name}_error_median_pct"] = weighted_quantile(errors, weights, 0.5)
        found[f"{peer}_{name}_error_median_pooled_pct"] = float(np.median(errors))
        found[f"{peer}_{name}_error_p95_pct"] = weighted_quantile(errors, weights, 0.95)
    return found


def fit_figures(left: LeftOut, runs: Sequence[Run]) -> dict[str, float]:
    """Recall of failures and false alarms of jobs that ran, ours and the peers'."""
    failed = {kind: [r for r in runs if r.failed == kind] for kind in ("oom", "inferred")}
    ran = [run for run in runs if run.peak_gib is not None]
    near = [r for r in ran if (r.peak_gib or 0) > 0.8 * r.job.machine.capacity_gib]

    def refused(some: Sequence[Run]) -> float:
        return 100 * float(np.mean([_p_fit(left, run) < 0.5 for run in some]))

    found = {
        "estimate_oom_recall_pct": refused(failed["oom"]),
        "estimate_oom_recall_inferred_pct": refused(failed["inferred"]),
        "estimate_oom_false_alarm_pct": refused(ran),
        "estimate_oom_false_alarm_near_ceiling_pct": refused(near),
        "estimate_oom_cases": float(len(failed["oom"])),
    }
    for peer, estimator in MEMORY_PEERS.items():
        for kind, some in (("oom_recall", failed["oom"]), ("oom_false_alarm", ran)):
            over = [estimator(run.job) > run.job.machine.capacity_gib for run in some]
            found[f"{peer}_{kind}_pct"] = 100 * float(np.mean(over))
    return found


def untold_figures(left: LeftOut) -> dict[str, float]:
    """The error where the wanted basis is not told, so that the allocator's peak is answered."""
    untold = [peak_memory(run.job, left.table_for(run.source)).peak.value for run in left.runs]
    errors = percent(left.fitting.log_observed - np.log(untold))
    weights = np.array([1 / np.sqrt(np.sum(left.sources == s)) for s in left.sources])
    return {
        "estimate_memory_error_median_basis_untold_pct": weighted_quantile(errors, weights, 0.5),
        "estimate_memory_error_median_basis_untold_pooled_pct": float(np.median(errors)),
    }


def _p_fit(left: LeftOut, run: Run) -> float:
    return peak_memory(told_basis(run.job, run.basis), left.table_for(run.source)).p_fit


def print_sources(name: str, left: LeftOut) -> None:
    """Median, P95, bias and coverage by source left out, and the median with its model left out."""
    print(f"{name:24s}    n  median     P95    bias  inside  model left out")
    inside = left.covered(left.errors)
    for source in sorted(set(left.sources)):
        own = left.sources == source
        errors = percent(left.errors[own])
        bias = 100 * np.median(np.expm1(-left.errors[own]))
        p95, within = np.quantile(errors, 0.95), 100 * inside[own].mean()
        seen = np.median(percent(left.by_model[own]))
        print(
            f"{source:24s} {own.sum():4d} {np.median(errors):6.1f}% {p95:6.1f}%"
            f" {bias:+6.1f}% {within:6.1f}% {seen:8.1f}%"
        )


def main() -> None:
    """Measure, print and write."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    runs = load_runs()
    time, memory = LeftOut(TIME, runs), LeftOut(MEMORY, runs)
    measures = figures("time", time) | figures("memory", memory)
    measures |= peer_figures("time", time, TIME_PEERS, 1.0)
    measures |= peer_figures("memory", memory, MEMORY_PEERS, GIB) | fit_figures(memory, runs)
    measures |= untold_figures(memory)
    measures["estimate_interval_coverage_pct"] = (
        measures["estimate_time_interval_coverage_pct"]
        + measures["estimate_memory_interval_coverage_pct"]
    ) / 2
    print_sources("time, source left out", time)
    print_sources("memory, source left out", memory)
    measures = {name: round(value, 2) for name, value in measures.items()}
    for name, value in measures.items():
        print(f"{name:64s} {value:10.2f}")
    print(write_measures("estimate", measures))


if __name__ == "__main__":
    main()
