"""The machine's drift: interpolated between anchors, and no more believed than they agree."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.stats.drift import Anchor, Drift, fit_drift

NOISE = 0.01


def anchors(*readings: tuple[float, float]) -> list[Anchor]:
    return [Anchor(at_s=at_s, log_ratio=ratio) for at_s, ratio in readings]


def test_without_an_anchor_the_machine_is_as_it_was_calibrated() -> None:
    drift = fit_drift([], NOISE)
    assert drift.at(100.0) == (0.0, 0.0)
    assert drift.is_due(0.0, trial_s=10.0, anchor_s=10.0)


def test_a_slower_machine_is_seen_by_one_anchor() -> None:
    slower, sd = fit_drift(anchors((0, math.log(1.2))), NOISE).at(10.0)
    assert abs(slower - math.log(1.2)) < 0.01
    assert 0 < sd < 0.05


def test_another_load_on_the_machine_is_no_noise() -> None:
    faster = fit_drift(anchors((0, math.log(0.25))), 0.1)
    assert faster.at(5.0)[0] < math.log(0.35)
    assert faster.noise_sd < 0.2


def test_a_reading_near_the_calibration_is_taken_for_noise() -> None:
    mean, _ = fit_drift(anchors((0, 0.05)), 0.05).at(0.0)
    assert 0 < mean < 0.03


def test_between_two_anchors_the_drift_is_interpolated() -> None:
    drift = fit_drift(anchors((0, 0.0), (600, 0.2)), NOISE)
    at = [drift.at(s)[0] for s in (0, 150, 300, 450, 600)]
    assert at == sorted(at)
    assert abs(at[2] - 0.1) < 0.01


def test_order_of_the_anchors_does_not_matter() -> None:
    forwards = fit_drift(anchors((0, 0.01), (60, 0.03), (90, -0.01)), NOISE)
    backwards = fit_drift(anchors((90, -0.01), (0, 0.01), (60, 0.03)), NOISE)
    assert forwards.at(45.0) == backwards.at(45.0)


def test_uncertainty_grows_away_from_the_anchors() -> None:
    drift = fit_drift(anchors((100, 0.0), (200, 0.0)), NOISE)
    sds = [drift.at(s)[1] for s in (200, 260, 600, 3600)]
    assert sds == sorted(sds)
    assert drift.at(-600.0)[1] > drift.at(100.0)[1]


def test_scattered_anchors_teach_more_noise_than_calm_ones() -> None:
    calm = fit_drift(anchors(*((60.0 * i, 0.0) for i in range(8))), NOISE)
    wild = fit_drift(anchors(*((60.0 * i, 0.05 * (-1) ** i) for i in range(8))), NOISE)
    assert calm.noise_sd < NOISE < wild.noise_sd


def test_a_calm_machine_needs_fewer_anchors_than_a_drifting_one() -> None:
    calm = fit_drift(anchors(*((60.0 * i, 0.0) for i in range(6))), NOISE)
    drifting = fit_drift(anchors(*((60.0 * i, 0.03 * i) for i in range(6))), NOISE)

    def due(drift: Drift) -> bool:
        return drift.is_due(300.0 + 120.0, trial_s=15.0, anchor_s=10.0)

    assert due(drifting)
    assert not due(calm)


def test_an_expensive_anchor_waits_longer() -> None:
    drift = fit_drift(anchors((0, 0.0)), NOISE)
    assert drift.is_due(600.0, trial_s=100.0, anchor_s=5.0)
    assert not drift.is_due(600.0, trial_s=5.0, anchor_s=100.0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 3600), st.floats(-0.5, 0.5)), min_size=1, max_size=8),
    st.floats(0.003, 0.1),
    st.floats(0, 4000),
)
def test_the_drift_stays_among_its_anchors_and_calibration(
    readings: list[tuple[float, float]], noise: float, at_s: float
) -> None:
    mean, sd = fit_drift(anchors(*readings), noise).at(at_s)
    ratios = [0.0, *(ratio for _, ratio in readings)]
    assert min(ratios) - 0.05 <= mean <= max(ratios) + 0.05
    assert 0 <= sd < 2
