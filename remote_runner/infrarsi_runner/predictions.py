"""The prediction table of a contract: one row a knob value, the rest as in the baseline.

The numbers come from the search child, which has been told every trial so far; the server only
looks them up.
"""

from typing import Any, Protocol

from infrarsi.knobs import Setting, Space
from infrarsi.trial import Completed, Trial
from infrarsi.units import GIB
from infrarsi.wire.probe import LineCost
from infrarsi.wire.results import Calibration, Interval, KnobPrediction, PredictionTable

LEVEL = 0.9
"""Coverage of the searcher's intervals."""


class Predicting(Protocol):
    """The part of the search child a table needs."""

    def predict(self, settings: list[Setting]) -> list[dict[str, Any]]:
        """One prediction a setting, as `Searcher.predict` gives them."""
        ...


def prediction_table(
    space: Space,
    calibration: Calibration,
    trials: list[Trial],
    search: Predicting,
    *,
    version: int,
    lines: tuple[LineCost, ...] = (),
) -> PredictionTable:
    """Predict every value of every knob, marking those that a trial has measured."""
    start = space.default_setting()
    cells = [(knob, value) for knob in space.knobs for value in knob.choices]
    settings = [{**start, knob.name: value} for knob, value in cells]
    predictions = search.predict(settings)
    rows = tuple(
        _row(knob.name, value, setting, prediction, calibration, trials)
        for (knob, value), setting, prediction in zip(cells, settings, predictions, strict=True)
    )
    return PredictionTable(
        contract_digest=calibration.contract_digest, version=version, rows=rows, lines=lines
    )


def _row(
    knob: str,
    value: Any,
    setting: Setting,
    prediction: dict[str, Any],
    calibration: Calibration,
    trials: list[Trial],
) -> KnobPrediction:
    measured = [
        t for t in trials if t.candidate.setting == setting and isinstance(t.outcome, Completed)
    ]
    step = _interval(prediction["step_time_s"], 1.0)
    tokens_per_s = calibration.tokens_per_step / step.value
    mfu_frac = tokens_per_s * calibration.flops_per_token / calibration.roof.flops_per_s
    return KnobPrediction(
        knob=knob,
        value=value,
        step_time_s=step,
        peak_mem_bytes=_interval(prediction["peak_mem_gib"], GIB),
        mfu_frac=mfu_frac,
        p_fit=prediction["p_fit"],
        known="measured" if measured else "predicted" if len(trials) > 1 else "estimate",
        n_trials=len(measured),
    )


def _interval(cell: dict[str, float], scale: float) -> Interval:
    return Interval(
        value=cell["value"] * scale,
        low=cell["low"] * scale,
        high=cell["high"] * scale,
        level=LEVEL,
    )
