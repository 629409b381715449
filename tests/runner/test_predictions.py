"""What the searcher says of a value, in the units of the wire."""

from typing import Any

import pytest
import recorded_results as results

from infrarsi.knobs import Setting
from infrarsi.units import GIB
from infrarsi_runner.predictions import expected, prediction_table, prices, reliability

CALIBRATION = results.calibration("d").model_copy(update={"base_mem_bytes": (GIB,)})


def cell(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


class Told:
    """A searcher with one price, one source and the same prediction for everything."""

    def predict(self, settings: list[Setting]) -> list[dict[str, Any]]:
        one = {"step_time_s": cell(1.5), "peak_mem_gib": cell(3.0), "p_fit": 0.75, "p_valid": 0.5}
        return [one for _ in settings]

    def prices(self) -> list[dict[str, Any]]:
        return [
            {
                "knob": "micro_batch",
                "value": 4,
                "time_frac": cell(-0.25),
                "mem_frac": None,
                "n_trials": 2,
            },
            {
                "knob": "micro_batch",
                "value": 8,
                "time_frac": None,
                "mem_frac": cell(0.5),
                "n_trials": 0,
            },
        ]

    def reliability(self) -> list[dict[str, Any]]:
        return [{"source": "recipe", "kind": "patch", "n": 3, "kept_frac": cell(0.8)}]


def test_a_price_is_in_seconds_and_bytes_of_the_baselines_step() -> None:
    cheaper, hungrier = prices(CALIBRATION, Told())
    assert cheaper.step_time_s is not None
    assert cheaper.step_time_s.value == pytest.approx(-0.5)
    assert cheaper.step_time_s.level == 0.9
    assert cheaper.peak_mem_bytes is None
    assert hungrier.peak_mem_bytes is not None
    assert hungrier.peak_mem_bytes.value == pytest.approx(0.5 * GIB)
    assert (cheaper.n_trials, hungrier.n_trials) == (2, 0)


def test_the_table_carries_the_prices() -> None:
    table = prediction_table(results.SPACE, CALIBRATION, [], Told(), version=3)
    assert table.prices == prices(CALIBRATION, Told())
    assert {row.p_fit for row in table.rows} == {0.75}


def test_what_is_expected_of_a_trial_has_both_chances_and_both_intervals() -> None:
    found = expected({"micro_batch": 4}, Told())
    assert found.predicted_step_time_s == pytest.approx((1.5, 1.4, 1.6))
    assert found.predicted_peak_mem_bytes == pytest.approx((3.0 * GIB, 2.9 * GIB, 3.1 * GIB))
    assert (found.predicted_p_fit, found.predicted_p_valid) == (0.75, 0.5)


def test_trust_in_claims_is_told_with_its_interval() -> None:
    [entry] = reliability(Told())
    assert (entry.source, entry.kind, entry.n) == ("recipe", "patch", 3)
    assert entry.kept_frac.low < entry.kept_frac.value < entry.kept_frac.high
