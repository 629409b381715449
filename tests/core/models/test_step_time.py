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
    predicted = model.predict([unseen])
    assert predicted.low[0] < step_time(unseen) < predicted.high[0]


def test_one_trial_predicts_itself_closely_and_others_vaguely():
    predicted = fit([{}]).predict([{}, {"a": True}])
    assert predicted.value[0] == pytest.approx(2.0, rel=0.01)
    assert predicted.high[0] / predicted.low[0] < 1.4
    assert predicted.high[1] / predicted.low[1] > 2


def test_a_claim_moves_the_expectation_before_any_trial():
    claims = {("a", True): TimeClaim(log_speedup=0.5, sd=0.1)}
    assert fit([{}], claims).predict([{"a": True}]).value[0] == pytest.approx(
        2 * np.exp(-0.5), rel=0.02
    )


def test_a_source_not_believed_moves_nothing():
    claims = {("a", True): TimeClaim(log_speedup=0.5, sd=0.1, belief=0.0)}
    assert fit([{}], claims).predict([{"a": True}]).value[0] == pytest.approx(2.0, rel=0.02)


def test_claims_that_trials_refute_lose_the_trust_of_all():
    claims = {(n, True): TimeClaim(log_speedup=0.6, sd=0.1) for n in ("a", "b", "c")}
    wrong = [{}, {"b": True}, {"b": True, "rows": 4}]
    trusting, doubting = fit([{}], claims), fit(wrong, claims)
    assert trusting.trust == 1.0
    assert doubting.trust == 0.0


def test_a_doubling_never_tried_is_extrapolated_with_more_doubt():
    model = fit([{}, {"rows": 4}])
    near, far = model.log_time([{"rows": 4}, {"rows": 8}])[1]
    assert model.predict([{"rows": 8}]).value[0] < 2.0
    assert far > 1.5 * near
