import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.models.encoding import EncodedKnob, Encoding
from infrarsi.models.memory import Peak, fit_memory

ROWS = (1, 2, 4, 8)
KNOBS = (
    EncodedKnob(name="rows", choices=ROWS, ordered=True),
    *(EncodedKnob(name=n, choices=(False, True), is_patch=True) for n in ("save", "other")),
)
ENCODING = Encoding(KNOBS, {"rows": 2, "save": False, "other": False})
BASE_GIB = 0.2

setting_strategy = st.fixed_dictionaries(
    {"rows": st.sampled_from(ROWS), "save": st.booleans(), "other": st.booleans()}
)
trial_strategy = st.tuples(setting_strategy, st.floats(0.3, 20.0), st.booleans())


def rows(*settings):
    return ENCODING.rows(settings)


def peaks_of(trials):
    return [Peak(setting=s, gib=g, censored=c) for s, g, c in trials]


def fit(peaks, **options):
    start = Peak(setting={}, gib=1.0)
    return fit_memory(ENCODING, [start, *peaks], base_gib=BASE_GIB, **options)


@settings(max_examples=60, deadline=None)
@given(st.lists(trial_strategy, max_size=6), setting_strategy, st.floats(0.3, 20.0))
def test_a_failure_never_lowers_the_upper_end_where_it_happened(trials, setting, gib):
    before = fit(peaks_of(trials)).predict(rows(setting)).high[0]
    after = fit([*peaks_of(trials), Peak(setting=setting, gib=gib, censored=True)])
    assert after.predict(rows(setting)).high[0] >= before - 1e-9
    assert after.predict(rows(setting)).high[0] >= gib


@settings(max_examples=60, deadline=None)
@given(st.lists(trial_strategy, min_size=1, max_size=8))
def test_the_upper_end_is_never_below_a_peak_that_was_measured(trials):
    model = fit(peaks_of(trials))
    for setting, gib, censored in trials:
        if not censored:
            assert model.predict(rows(setting)).high[0] >= gib


@settings(max_examples=60, deadline=None)
@given(st.lists(trial_strategy, max_size=6), setting_strategy, st.floats(0.3, 20.0))
def test_the_chance_to_fit_grows_with_the_limit_and_is_a_probability(trials, setting, limit):
    model = fit(peaks_of(trials))
    low, high = (float(model.p_fit(rows(setting), x)[0]) for x in (limit, 1.5 * limit))
    assert 0 <= low <= high <= 1


def test_a_setting_that_ran_out_of_memory_does_not_fit_below_its_bound():
    model = fit([Peak(setting={"rows": 8}, gib=3.0, censored=True)])
    assert model.p_fit(rows({"rows": 8}), 3.0)[0] == 0
    assert model.p_fit(rows({"rows": 8}), 30.0)[0] > 0.5


def test_a_surprising_failure_raises_its_neighbours():
    quiet = fit([Peak(setting={"rows": 4}, gib=1.3)])
    loud = fit(
        [Peak(setting={"rows": 4}, gib=1.3), Peak(setting={"rows": 8}, gib=6.0, censored=True)]
    )
    neighbour = rows({"rows": 8, "other": True})
    assert loud.predict(neighbour).value[0] > 1.5 * quiet.predict(neighbour).value[0]


def test_a_failure_that_was_expected_anyway_says_next_to_nothing():
    known = [Peak(setting={"rows": r}, gib=0.2 + 0.4 * r) for r in (1, 4, 8)]
    foreseen = [*known, Peak(setting={"rows": 8, "other": True}, gib=0.5, censored=True)]
    query = rows({"rows": 8, "save": True}, {"rows": 4, "other": True})
    assert fit(foreseen).predict(query).value == pytest.approx(
        fit(known).predict(query).value, rel=0.02
    )


def test_a_saver_is_expected_to_save_and_a_hungry_change_to_need():
    roles = {("save", True): "saver", ("other", True): "hungry"}
    start, saved, needed = (
        fit([], roles=roles).predict(rows({}, {"save": True}, {"other": True})).value
    )
    assert saved < start < needed


def test_effects_multiply_what_is_above_the_base():
    peaks = [Peak(setting={"rows": r}, gib=BASE_GIB + 0.4 * r) for r in (1, 4, 8)]
    peaks.append(Peak(setting={"rows": 8, "save": True}, gib=BASE_GIB + 1.6))
    predicted = fit(peaks).predict(rows({"rows": 4, "save": True}))
    assert predicted.low[0] < BASE_GIB + 0.8 < predicted.high[0]
    assert predicted.value[0] == pytest.approx(1.0, rel=0.15)


def test_only_failures_still_give_a_model():
    model = fit_memory(ENCODING, [Peak(setting={"rows": 8}, gib=2.0, censored=True)])
    assert np.isfinite(model.predict(rows({"rows": 1})).high[0])
    assert model.p_fit(rows({"rows": 1}), 2.0)[0] > model.p_fit(rows({"rows": 8}), 2.0)[0]


class Described:
    """Physics of a made-up job: weights that stay and activations that grow with the rows."""

    def time_s(self, rows):
        return np.ones((len(rows), 1))

    def memory_gib(self, rows):
        grown = [float(ROWS[int(i)]) for i in rows[:, 0]]
        return np.stack([np.full(len(rows), 4.0), np.asarray(grown)], axis=1)


def test_physics_alone_expects_what_it_says():
    model = fit_memory(ENCODING, [], physics=Described())
    assert model.predict(rows({"rows": 8})).value[0] == pytest.approx(12.0, rel=0.01)


def test_trials_correct_the_component_of_the_physics_that_is_off():
    seen = [Peak(setting={"rows": r}, gib=4.0 + 2.5 * r) for r in (1, 2, 4)]
    with_physics = fit_memory(ENCODING, seen, physics=Described())
    without = fit_memory(ENCODING, seen)
    errors = [abs(m.predict(rows({"rows": 8})).value[0] - 24.0) for m in (with_physics, without)]
    assert errors[0] < 3.0
    assert errors[0] < errors[1]


def test_a_price_that_surprises_is_let_be():
    seen = [Peak(setting={"rows": r}, gib=0.2 + 0.4 * r) for r in ROWS]
    seen += [Peak(setting={"rows": r, "save": True}, gib=0.2 + 0.04 * r) for r in (2, 4)]
    predicted = fit(seen).predict(rows({"rows": 8, "save": True}))
    assert predicted.value[0] == pytest.approx(0.2 + 0.32, rel=0.25)
