"""How the bench of the search counts, sums up and goes on."""

from pathlib import Path

import numpy as np
import pytest
from search import running, summary
from search.methods import CoordinateDescent, Method, RandomValid
from search.mixtures import all_workloads
from search.recorded import CAPACITY_GIB, near_ceiling, tables, trials_needed
from search.recorded_bench import memory_measures, trial_measures
from search.workload import Setting, Workload

SMALL = all_workloads()["dense-3b-few-knobs"]


class Knowing(RandomValid):
    """Asks for the optimum at once."""

    def __init__(self, w: Workload, seed: int) -> None:
        from search.optima import optimum

        super().__init__(w, seed)
        self.answer = optimum(w.name)[0]

    def ask(self) -> Setting:
        return self.answer

    def chosen(self) -> Setting | None:
        return self.answer if self.best is not None else None


def test_a_method_that_knows_the_optimum_has_no_regret() -> None:
    result = running.run_method(SMALL, Knowing, 0)
    assert [result[f"regret_{m}_pct"] for m in running.MARKS] == pytest.approx([0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("make", [RandomValid, CoordinateDescent])
def test_a_run_is_the_same_for_the_same_seed(make: type[RandomValid]) -> None:
    results = [running.run_method(SMALL, make, seed) for seed in (1, 1, 2)]
    statuses = [result["statuses"] for result in results]
    assert statuses[0] == statuses[1] != statuses[2]
    assert len(statuses[0]) == running.BUDGET
    counted = results[0]["oom"] + results[0]["broken"] + statuses[0].count("ok")
    assert counted == running.BUDGET


def test_a_missing_switch_is_told_apart_from_a_mistake() -> None:
    def lacking(w: Workload, seed: int) -> Method:
        raise TypeError("unexpected keyword argument 'without'")

    def mistaken(w: Workload, seed: int) -> Method:
        raise TypeError("something else")

    assert running.run_simulated(SMALL.name, lacking, "x", 0) is None
    with pytest.raises(TypeError, match="something else"):
        running.run_simulated(SMALL.name, mistaken, "x", 0)


def test_lines_of_another_searcher_are_not_used_again(tmp_path: Path) -> None:
    path = tmp_path / "ours.jsonl"
    running.keep(path, {"place": "a", "method": "ours", "seed": 0})
    assert len(running.kept_lines(path, running.searcher_digest())) == 1
    assert running.kept_lines(path, "another") == []
    assert len(running.kept_lines(path, None)) == 1


def lines(method: str, regrets: list[float]) -> list[dict[str, object]]:
    return [
        {"place": place, "method": method, "seed": seed, "regret_20_pct": regret}
        for place in ("a", "b")
        for seed, regret in enumerate(regrets)
    ]


def test_paired_differences_take_away_what_seeds_share() -> None:
    ours, other = lines("ours", [1.0, 20.0, 300.0]), lines("x", [3.0, 22.0, 302.0])
    centre, low, high, pairs = summary.paired(ours, other, "regret_20_pct")
    assert (centre, low, high, pairs) == pytest.approx((2.0, 2.0, 2.0, 6))


def test_trials_are_counted_with_the_baseline_and_without_repeats() -> None:
    table = tables()[0]

    class Repeating(RandomValid):
        def ask(self) -> Setting:
            return table.baseline(0)

    needed = trials_needed(table, Repeating, 0)
    assert 2 <= needed <= len(table.rows)
    assert needed == len(table.tried)


def test_the_ratio_is_ours_over_the_peers() -> None:
    rows = [
        {"place": "a", "method": "ours", "seed": 0, "trials": 5},
        {"place": "a", "method": "optuna-tpe", "seed": 0, "trials": 20},
    ]
    assert trial_measures(rows)["nanotron_trials_ratio"] == 0.25


def test_memory_is_judged_by_errors_recall_and_false_alarms() -> None:
    def case(status: str, peak: float | None, told: float, p_fit: float) -> dict[str, object]:
        given = {"told_gib": told, "low": told - 5, "high": told + 5}
        return {"status": status, "peak_gib": peak, "p_fit": p_fit, "near": True, **given}

    cases = [case("ok", 50.0, 55.0, 0.9), case("ok", 70.0, 70.0, 0.2), case("oom", None, 90, 0.1)]
    rows = [{"place": "a", "method": "ours-memory-8", "seed": 0, "cases": cases}]
    found = memory_measures(rows)
    assert found["memory_error_median_pct"] == pytest.approx(5.0)
    assert (found["oom_recall_pct"], found["oom_false_alarm_pct"]) == (100.0, 50.0)


def test_enough_recorded_cases_are_near_the_ceiling() -> None:
    near = [(t, r) for t in tables() for r in t.rows.values() if near_ceiling(t, r)]
    assert sum(r.status == "ok" for _, r in near) >= 60
    assert sum(r.status == "oom" for _, r in near) >= 30
    assert max(r.peak_gib for _, r in near if r.status == "ok") < CAPACITY_GIB
    assert not np.isnan([r.peak_gib for _, r in near if r.status == "ok"]).any()
