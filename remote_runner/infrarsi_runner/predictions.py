"""The prediction table of a contract: one row a knob value, the rest as in the baseline; prices.

The numbers come from the search child, which has been told every trial so far; the server only
looks them up.
"""

from typing import Any, Protocol

from infrarsi.knobs import Setting, Space
from infrarsi.trial import Completed, Expected, Trial
from infrarsi.units import GIB
from infrarsi.wire.probe import LineCost
from infrarsi.wire.results import (
    Calibration,
    Interval,
    KnobPrediction,
    PredictionTable,
    Price,
    Reliability,
)

LEVEL = 0.9
"""Coverage of the searcher's intervals."""


class Predicting(Protocol):
    """The part of the search child that choosing finalists needs."""

    def predict(self, settings: list[Setting]) -> list[dict[str, Any]]:
        """One prediction a setting, as `Searcher.predict` gives them."""
        ...


class Pricing(Predicting, Protocol):
    """The part of the search child a table needs."""

    def prices(self) -> list[dict[str, Any]]:
        """One entry a value, as `Searcher.prices` gives them."""
        ...

    def reliability(self) -> list[dict[str, Any]]:
        """One entry a source and kind, as `Searcher.reliability` gives them."""
        ...


def prediction_table(
    space: Space,
    calibration: Calibration,
    trials: list[Trial],
    search: Pricing,
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
        contract_digest=calibration.contract_digest,
        version=version,
        rows=rows,
        lines=lines,
        prices=prices(calibration, search),
    )


def expected(setting: Setting, search: Predicting) -> Expected:
    """What is expected of a candidate before any run of it."""
    [prediction] = search.predict([setting])
    return Expected(
        predicted_step_time_s=_bounds(prediction["step_time_s"], 1.0),
        predicted_peak_mem_bytes=_bounds(prediction["peak_mem_gib"], GIB),
        predicted_p_fit=prediction["p_fit"],
        predicted_p_valid=prediction["p_valid"],
    )


def prices(calibration: Calibration, search: Pricing) -> tuple[Price, ...]:
    """What each value adds to a step of the baseline, in s and bytes.

    The searcher gives fractions of the step time, and of the memory above what a process uses
    before the job allocates.
    """
    step_s = calibration.step_time_s.value
    base = max(calibration.base_mem_bytes, default=0)
    above = max(calibration.peak_mem_bytes, default=0) - base
    return tuple(
        Price(
            knob=entry["knob"],
            value=entry["value"],
            step_time_s=_optional(entry["time_frac"], step_s),
            peak_mem_bytes=_optional(entry["mem_frac"], above),
            n_trials=entry["n_trials"],
        )
        for entry in search.prices()
    )


def reliability(search: Pricing) -> tuple[Reliability, ...]:
    """How much of what each source claims held so far."""
    return tuple(
        Reliability(
            source=entry["source"],
            kind=entry["kind"],
            n=entry["n"],
            kept_frac=_interval(entry["kept_frac"], 1.0),
        )
        for entry in search.reliability()
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


def _bounds(cell: dict[str, float] | None, scale: float) -> tuple[float, float, float] | None:
    if cell is None:
        return None
    return cell["value"] * scale, cell["low"] * scale, cell["high"] * scale


def _optional(cell: dict[str, float] | None, scale: float) -> Interval | None:
    return None if cell is None else _interval(cell, scale)


def _interval(cell: dict[str, float], scale: float) -> Interval:
    return Interval(
        value=cell["value"] * scale,
        low=cell["low"] * scale,
        high=cell["high"] * scale,
        level=LEVEL,
    )
