"""When the baseline is read again: at first, when the drift may matter, and never too rarely."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import calibration_of, make_bench, open_switched, switch

from infrarsi.knobs import Candidate
from infrarsi.trial import Completed, Trial
from infrarsi.wire.results import AnchorRun
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.anchoring import MOST_TRIALS, Anchoring

STEP_S = 1.0


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with make_bench(tmp_path).context() as context:
        yield context


def anchoring(context: Context, calibrated_at_s: float | None, noise: float = 0.02) -> Anchoring:
    job = open_switched(context, switch("MICRO_BATCH", 4, 16))
    calibration = calibration_of(job, STEP_S, 1 << 30, pair_log_sd=noise)
    return Anchoring(context, job, calibration, 0.0, calibrated_at_s)


def recorded(context: Context, number: int, at_s: float, step_s: float | None = STEP_S) -> None:
    """What an attempt of this campaign has journalled, so that nothing runs."""
    context.once(f"anchor/{number}/at", float, lambda: at_s)
    run = AnchorRun(before_trial=number, at_s=at_s, wall_s=10.0, step_time_s=step_s)
    context.once(f"anchor/{number}", AnchorRun, lambda: run)


def trials(n: int, wall_s: float = 20.0) -> list[Trial]:
    outcome = Completed(step_time_s=STEP_S, peak_mem_bytes=1)
    return [
        Trial(number=i, candidate=Candidate(), outcome=outcome, wall_s=wall_s if i else 0.0)
        for i in range(n + 1)
    ]


def test_an_earlier_campaigns_calibration_is_checked_before_the_first_trial(
    context: Context,
) -> None:
    recorded(context, 1, 5.0)
    made = anchoring(context, None)
    assert made.before(1, trials(0))
    assert [run.before_trial for run in made.runs] == [1]


def test_a_calibration_just_made_needs_no_anchor(context: Context) -> None:
    recorded(context, 1, 12.0)
    made = anchoring(context, 10.0)
    assert not made.before(1, trials(0))
    assert made.runs == []


def test_the_baseline_is_read_again_at_the_latest_after_six_trials(context: Context) -> None:
    made = anchoring(context, 0.0, noise=0.2)
    due = []
    for number in range(1, 2 * MOST_TRIALS + 2):
        recorded(context, number, 20.0 * number)
        if made.before(number, trials(number - 1)):
            due.append(number)
    assert due == [1 + MOST_TRIALS, 1 + 2 * MOST_TRIALS]


def test_a_quiet_reading_is_worth_an_anchor_sooner_than_a_noisy_one(context: Context) -> None:
    recorded(context, 2, 400.0)
    assert anchoring(context, 0.0, noise=0.003).before(2, trials(1))
    assert not anchoring(context, 0.0, noise=0.2).before(2, trials(1))


def test_an_anchor_that_failed_tells_no_drift_and_is_not_made_at_every_trial(
    context: Context,
) -> None:
    recorded(context, 1, 5.0, step_s=None)
    made = anchoring(context, None)
    assert made.before(1, trials(0))
    assert made.drift().at(10.0) == (0.0, 0.0)
    recorded(context, 2, 5000.0)
    assert not made.before(2, trials(1))
