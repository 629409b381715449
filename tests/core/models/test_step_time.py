import numpy as np
import pytest

from infrarsi.models.encoding import EncodedKnob, Encoding
from infrarsi.models.step_time import TimeClaim, fit_step_time

KNOBS = (
    EncodedKnob(name="rows", choices=(1, 2, 4, 8), ordered=True),
    *(EncodedKnob(name=n, choices=(False, True), is_patch=True) for n in ("a", "b", "c")),
)
ENCODING = Encoding(KNOBS, {"rows": 2, "a": False, "b": False, "c": False})
EFFECTS = {"a": -0.5, "b": 0.1, "c": -0.2}


def step_time(setting):
    log = sum(e for k, e in EFFECTS.items() if setting.get(k)) - 0.1 * np.log2(
        setting.get("rows", 2) / 2
    )
    return float(2.0 * np.exp(log))


def fit(settings, claims=None):
    return fit_step_time(ENCODING, settings, [step_time(s) for s in settings], claims or {})


def test_additive_effects_are_recovered_with_honest_intervals():
    settings = [{}, {"a": True}, {"b": True, "rows": 4}, {"a": True, "c": True}, {"rows": 8}]
    model = fit(settings)
    for effect in model.effects([("a", True), ("b", True), ("c", True)]):
        assert abs(effect.mean - EFFECTS[effect.knob]) < 2 * effect.sd
        assert effect.sd < 0.3
    unseen = {"a": True, "b": True, "c": True, "rows": 8}
    predicted = model.predict(ENCODING.rows([unseen]))
    assert predicted.low[0] < step_time(unseen) < predicted.high[0]


def test_one_trial_predicts_itself_closely_and_others_vaguely():
    predicted = fit([{}]).predict(ENCODING.rows([{}, {"a": True}]))
    assert predicted.value[0] == pytest.approx(2.0, rel=0.01)
    assert predicted.high[0] / predicted.low[0] < 1.4
    assert predicted.high[1] / predicted.low[1] > 1.3


def test_a_claim_moves_the_expectation_before_any_trial():
    claims = {("a", True): TimeClaim(log_speedup=0.5, sd=0.1)}
    assert fit([{}], claims).predict(ENCODING.rows([{"a": True}])).value[0] == pytest.approx(
        2 * np.exp(-0.7 * 0.5), rel=0.02
    )


def test_a_source_not_believed_moves_nothing():
    claims = {("a", True): TimeClaim(log_speedup=0.5, sd=0.1, belief=0.0)}
    assert fit([{}], claims).predict(ENCODING.rows([{"a": True}])).value[0] == pytest.approx(
        2.0, rel=0.02
    )


def claims_of(source, **log_speedups):
    return {
        (name, True): TimeClaim(log_speedup=value, sd=0.05, source=source, kind="patch")
        for name, value in log_speedups.items()
    }


def test_a_source_that_told_the_truth_is_believed_about_the_rest():
    claims = claims_of("paper", a=0.5, c=0.2)
    (before,), (after,) = fit([{}], claims).trust(), fit([{}, {"a": True}], claims).trust()
    assert (before.n, after.n) == (0, 1)
    assert after.mean > before.mean
    assert after.sd < before.sd
    assert after.mean == pytest.approx(1.0, abs=0.15)


def test_a_source_whose_claim_came_out_reversed_is_believed_no_more():
    claims = claims_of("blog", a=-0.5, c=0.3)
    model = fit([{}, {"a": True}], claims)
    assert model.trust()[0].mean < 0.1
    untried = model.predict(ENCODING.rows([{"c": True}])).value[0]
    assert untried > fit([{}], claims).predict(ENCODING.rows([{"c": True}])).value[0]


def test_another_source_of_the_same_kind_is_doubted_less_than_the_liar():
    claims = {**claims_of("blog", a=-0.5), **claims_of("paper", c=0.3)}
    blog, paper = fit([{}, {"a": True}], claims).trust()
    assert blog.mean < paper.mean < fit([{}], claims).trust()[1].mean


def test_without_revision_trust_stays():
    claims = claims_of("blog", a=-0.5, c=0.3)
    settings = [{}, {"a": True}]
    model = fit_step_time(
        ENCODING, settings, [step_time(s) for s in settings], claims, revise=False
    )
    assert model.trust()[0].mean == pytest.approx(0.7, abs=0.01)


def test_one_slow_reading_among_many_moves_little():
    settings = [{}, {"a": True}, {"b": True}, {"c": True}, {"a": True, "c": True}, {"rows": 4}]
    times = [step_time(s) for s in settings]
    calm = fit_step_time(ENCODING, settings, times, {})
    slow = fit_step_time(ENCODING, [*settings, {"a": True}], [*times, 1.3 * times[1]], {})
    row = ENCODING.rows([{"a": True}])
    assert slow.predict(row).value[0] == pytest.approx(calm.predict(row).value[0], rel=0.05)


class Described:
    """Physics of a made-up job: a fixed part, and one that falls with the rows."""

    def time_s(self, rows):
        falling = 1.0 / np.asarray([KNOBS[0].choices[int(i)] for i in rows[:, 0]], dtype=float)
        return np.stack([np.full(len(rows), 1.0), falling], axis=1)

    def memory_gib(self, rows):
        return np.ones((len(rows), 1))


def test_physics_says_what_no_trial_has():
    model = fit_step_time(ENCODING, [{}], [3.0], {}, physics=Described())
    one, eight = model.predict(ENCODING.rows([{"rows": 1}, {"rows": 8}])).value
    assert one == pytest.approx(4.0, rel=0.05)
    assert eight == pytest.approx(2.25, rel=0.05)


def test_before_any_trial_physics_gives_a_wide_guess():
    model = fit_step_time(ENCODING, [], [], {}, physics=Described())
    guess = model.predict(ENCODING.rows([{}]))
    assert guess.value[0] == pytest.approx(1.5, rel=0.01)
    assert guess.high[0] / guess.low[0] > 5


def test_a_doubling_never_tried_is_extrapolated_with_more_doubt():
    model = fit([{}, {"rows": 4}])
    near, far = model.log_time(ENCODING.rows([{"rows": 4}, {"rows": 8}]))[1]
    assert model.predict(ENCODING.rows([{"rows": 8}])).value[0] < 2.0
    assert far > 1.5 * near
