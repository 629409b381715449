"""The search of a campaign on real jobs: what fails seconds of a run never costs a trial."""

from pathlib import Path

import pytest
from campaigns import Bench, calibration_of, make_bench, open_switched, switch

from infrarsi.knobs import Knob
from infrarsi.trial import Completed, Crashed, Rejected
from infrarsi.wire.messages import Budget
from infrarsi.wire.results import Price
from infrarsi_runner.context import Context
from infrarsi_runner.predictions import prices
from infrarsi_runner.procedures.anchoring import Anchoring
from infrarsi_runner.procedures.costs import add_up
from infrarsi_runner.procedures.screening import Screened, Screening
from infrarsi_runner.procedures.searched import Search

pytestmark = pytest.mark.live

GIB = 1 << 30
EXCLUSIVE = (switch("LEFT", 0, 1), switch("RIGHT", 0, 1))


def screen(context: Context, *knobs: Knob) -> tuple[Screened, tuple[Price, ...]]:
    """Search the space of these knobs to the end of the budget."""
    job = open_switched(context, *knobs)
    calibration = calibration_of(job, step_time_s=0.02, peak_mem_bytes=GIB // 2)
    started_s = context.once("started", float, context.now_s)
    anchoring = Anchoring(context, job, calibration, started_s, None)
    with Search(job, calibration, seed=0) as search:
        screened = Screening(context, job, calibration, search, anchoring).run()
        return screened, prices(calibration, search.child)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = make_bench(tmp_path_factory.mktemp("screening"))
    bench.request = bench.request.model_copy(update={"budget": Budget(n_trials=3, minutes=10)})
    return bench


@pytest.fixture(scope="module")
def screened(bench: Bench) -> Screened:
    with bench.context() as context:
        return screen(context, *EXCLUSIVE)[0]


def test_two_switches_that_exclude_each_other_are_turned_away_together(screened: Screened) -> None:
    assert [trial.number for trial in screened.trials] == [0, 1, 2]
    assert all(isinstance(trial.outcome, Completed) for trial in screened.trials)
    [away] = screened.turned_away
    assert away.blamed == {"left": 1, "right": 1}
    assert isinstance(away.outcome, Crashed)
    assert "exclude each other" in away.outcome.cause


def test_every_trial_was_predicted_and_anchored(screened: Screened) -> None:
    assert screened.anchors[0].before_trial == 1
    assert screened.anchors[0].step_time_s is not None
    for trial in screened.trials[1:]:
        assert isinstance(trial.outcome, Completed)
        assert trial.predicted_step_time_s is not None
        assert trial.predicted_p_valid is not None
        assert trial.anchored_step_time_s not in (None, trial.outcome.step_time_s)
        assert trial.reading_log_sd is not None


def test_what_was_spent_before_trials_is_booked_apart(screened: Screened) -> None:
    cost = add_up(screened, total_s=100.0, doctor_s=0.0, confirmation_s=0.0)
    assert (cost.n_trials, cost.n_failed, cost.n_turned_away) == (2, 0, 1)
    assert cost.smoke_s > 0
    assert cost.anchor_s > 0
    assert cost.smoke_s + cost.anchor_s + cost.trials_s == pytest.approx(screened.spent_s)


def test_a_search_taken_up_again_runs_nothing_twice(bench: Bench, screened: Screened) -> None:
    n_runs = len(bench.runs())
    with bench.context() as context:
        again, _ = screen(context, *EXCLUSIVE)
    assert again == screened
    assert len(bench.runs()) == n_runs


def test_a_rejected_trial_teaches_neither_speed_nor_its_claim(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    bench.request = bench.request.model_copy(update={"budget": Budget(n_trials=1, minutes=5)})
    with bench.context() as context:
        screened, learned = screen(context, switch("GLOBAL_BATCH", 16, 8))
    [baseline, trial] = screened.trials
    assert isinstance(trial.outcome, Rejected)
    assert trial.step_time_s is None
    assert baseline.step_time_s is not None
    [price] = learned
    assert price.n_trials == 0
    assert [name for name in bench.runs() if name.startswith("trial")] == []
