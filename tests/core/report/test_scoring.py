"""Predictions are scored against what came, in counts a reader can check."""

from hypothesis import given
from hypothesis import strategies as st

from infrarsi.contract.catalogue import violation
from infrarsi.knobs import Candidate
from infrarsi.report.scoring import describe_scores, score
from infrarsi.trial import Completed, Crashed, Outcome, OutOfMemory, Rejected, Trial, TurnedAway

AWAY = TurnedAway(
    before_trial=2,
    candidate=Candidate(),
    outcome=Crashed(cause="x"),
    short_runs=(),
    predicted_p_valid=0.25,
    predicted_p_fit=1.0,
)


def trial(
    step_s: float | None, low: float = 1.0, high: float = 2.0, outcome: Outcome | None = None
) -> Trial:
    return Trial(
        number=1,
        candidate=Candidate(),
        outcome=outcome or Completed(step_time_s=9.0, peak_mem_bytes=100),
        anchored_step_time_s=step_s,
        predicted_step_time_s=(low, low, high),
        predicted_peak_mem_bytes=(50.0, 40.0, 120.0),
        predicted_p_fit=0.5,
        predicted_p_valid=0.75,
    )


def test_anchored_times_within_their_interval_are_counted() -> None:
    scores = score([trial(1.5), trial(2.0), trial(2.5)])
    assert (scores.step_time.n, scores.step_time.n_within) == (3, 2)
    assert (scores.peak_mem.n, scores.peak_mem.n_within) == (3, 3)


def test_a_rejected_trial_scores_neither_speed_nor_memory() -> None:
    rejected = Rejected(violations=(violation("W101", "m"),))
    scores = score([trial(None, outcome=rejected)])
    assert scores.step_time.n == scores.peak_mem.n == scores.fits.n == 0
    assert (scores.runs.n, scores.runs.n_true) == (1, 0)


def test_what_was_turned_away_counts_among_the_chances() -> None:
    scores = score([trial(1.5), trial(None, outcome=OutOfMemory(at_least_bytes=5))], [AWAY])
    assert (scores.fits.n, scores.fits.expected, scores.fits.n_true) == (2, 1.0, 1)
    assert (scores.runs.n, scores.runs.expected, scores.runs.n_true) == (2, 1.0, 1)


def test_a_baseline_that_was_not_predicted_is_not_scored() -> None:
    baseline = Trial(
        number=0, candidate=Candidate(), outcome=Completed(step_time_s=1.0, peak_mem_bytes=1)
    )
    assert describe_scores(score([baseline])) == ()


def test_the_score_reads_as_a_sentence() -> None:
    told = describe_scores(score([trial(1.5)] * 7 + [trial(3.0)], [AWAY]))
    assert told[0] == (
        "7 of 8 step times fell within their 90 % interval, predicted before the trial."
    )
    assert told[-1] == "8 of 9 candidates ran; 6.2 were expected to."


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9), st.floats(0.1, 9))))
def test_no_more_fall_within_than_there_are(times: list[tuple[float, float, float]]) -> None:
    scores = score([trial(a, min(b, c), max(b, c)) for a, b, c in times])
    assert 0 <= scores.step_time.n_within <= scores.step_time.n == len(times)
