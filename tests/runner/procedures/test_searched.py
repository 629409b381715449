"""Readings are set against the baseline's at the same time, and told again where that matters."""

import math
from collections.abc import Iterator

import pytest
from campaigns import calibration_of, make_bench, open_switched, switch

from infrarsi.knobs import Candidate
from infrarsi.stats.drift import Anchor, Drift, fit_drift
from infrarsi.trial import Completed, Crashed, ShortRun, Trial
from infrarsi_runner.procedures.anchoring import anchored, expected_noise_sd
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.procedures.searched import Search

GIB = 1 << 30
ROWS = switch("MICRO_BATCH", 4, 8, 16)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    bench = make_bench(tmp_path_factory.mktemp("searched"))
    with bench.context() as context:
        return open_switched(context, ROWS)


@pytest.fixture
def search(job: Job) -> Iterator[Search]:
    with Search(job, calibration_of(job, 1.0, GIB), seed=0) as search:
        search.add(reading())
        yield search


def reading(step_s: float = 0.6, at_s: float | None = 100.0) -> Trial:
    outcome = Completed(step_time_s=step_s, peak_mem_bytes=GIB)
    candidate = Candidate(setting={"micro_batch": 16})
    return Trial(number=1, candidate=candidate, outcome=outcome, wall_s=20.0, at_s=at_s)


def slower_by(ratio: float, n: int = 3) -> Drift:
    ratios = [Anchor(at_s=40.0 * i, log_ratio=math.log(ratio)) for i in range(n)]
    return fit_drift(ratios, 0.02)


def expected_s(search: Search) -> float:
    [prediction] = search.child.predict([{"micro_batch": 16}])
    return prediction["step_time_s"]["value"]


def test_a_trial_on_a_slow_machine_is_as_fast_as_the_baseline_lets_it_be() -> None:
    trial = anchored(reading(), slower_by(1.2))
    assert isinstance(trial.outcome, Completed)
    assert trial.outcome.step_time_s == 0.6
    assert trial.step_time_s == pytest.approx(0.5, rel=0.02)
    assert trial.reading_log_sd is not None
    assert trial.reading_log_sd > 0.005


def test_a_trial_of_unknown_time_or_without_a_reading_stays_as_it_is() -> None:
    for trial in (
        reading(at_s=None),
        Trial(number=1, candidate=Candidate(), outcome=Crashed(cause="x"), at_s=1.0),
    ):
        assert anchored(trial, slower_by(1.2)) == trial


def test_an_anchor_that_moves_readings_has_them_told_again(search: Search) -> None:
    before_s = expected_s(search)
    search.set_against(slower_by(1.5))
    assert search.trials[1].step_time_s == pytest.approx(0.4, rel=0.03)
    assert search.trials[0].step_time_s == 1.0
    assert expected_s(search) < before_s


def test_a_reading_that_hardly_moves_is_not_told_again(job: Job) -> None:
    calibration = calibration_of(job, 1.0, GIB)
    drift = fit_drift([Anchor(at_s=100.0, log_ratio=0.001)], expected_noise_sd(calibration))
    with Search(job, calibration, seed=0) as search:
        search.add(reading())
        before_s = expected_s(search)
        search.set_against(drift)
        assert expected_s(search) == before_s
        assert search.trials[1].anchored_step_time_s is not None


def test_what_short_runs_taught_is_told_again_too(search: Search) -> None:
    failed = ShortRun(
        kind="smoke",
        candidate=Candidate(setting={"micro_batch": 8}),
        outcome=Crashed(cause="RuntimeError: no"),
    )
    search.add(failed)
    search.set_against(slower_by(1.5))
    [prediction] = search.child.predict([{"micro_batch": 8}])
    assert prediction["p_valid"] < 0.5
    assert len(search.trials) == 2
