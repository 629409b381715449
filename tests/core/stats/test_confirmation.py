import math

import numpy as np
import pytest

from infrarsi.contract.contract import Protocol
from infrarsi.stats.boundaries import Seen, boundaries, seen_of
from infrarsi.stats.confirmation import decide
from infrarsi.stats.noise import fit_noise
from infrarsi.stats.simulation import Noise
from infrarsi.stats.statistic import at_look

PROTOCOL = Protocol()
QUIET = fit_noise([0.02, -0.02, 0.015, -0.025])


def test_a_large_gain_is_promoted_at_the_first_look():
    decision = decide([0.58, 0.61], QUIET, PROTOCOL)
    assert decision.kind == "promote"
    assert decision.speedup.ratio == pytest.approx(math.exp(0.595))
    assert 1.5 < decision.speedup.low < decision.speedup.ratio < decision.speedup.high < 2.1


def test_before_the_first_look_nothing_is_said():
    decision = decide([0.6], QUIET, PROTOCOL)
    assert decision.kind == "continue"
    assert decision.speedup is None


def test_units_between_looks_are_not_peeked_at():
    at_two = decide([0.05, 0.06], QUIET, PROTOCOL)
    assert decide([0.05, 0.06, 9.0], QUIET, PROTOCOL) == at_two
    assert at_two.kind == "continue"


def test_a_gain_that_is_excluded_is_futile():
    decision = decide([-0.3, -0.31], QUIET, PROTOCOL)
    assert decision.kind == "futile"
    assert decision.gain_excluded


def test_a_hopeless_confirmation_stops_early():
    assert decide([0.0, 0.01, -0.02, 0.0], QUIET, PROTOCOL).kind == "futile"


def test_the_last_look_without_an_answer_is_not_resolved():
    units = [0.03, 0.06, -0.02, 0.05, 0.01, 0.04, 0.03, 0.02]
    assert decide(units, QUIET, PROTOCOL).kind == "not_resolved"


def test_units_that_agree_by_chance_are_no_surer_than_the_control():
    noisy = fit_noise([0.2, -0.2, 0.15, -0.25])
    agreeing = [0.1, 0.1]
    decision = decide(agreeing, noisy, PROTOCOL)
    assert decision.kind == "futile"
    assert decision.speedup.low < 1
    assert not decision.gain_excluded


def test_without_any_control_two_units_must_agree_perfectly():
    none = fit_noise([])
    assert decide([0.55, 0.63], none, PROTOCOL).kind == "continue"


def test_a_single_unit_without_a_control_tells_nothing():
    protocol = Protocol(looks=(1,))
    assert decide([0.5], fit_noise([]), protocol).kind == "not_resolved"
    assert decide([0.5], fit_noise([]), protocol).speedup is None


def test_a_gain_of_exactly_the_minimum_is_not_promoted_by_perfect_agreement():
    units = [math.log(1.01)] * 8
    assert decide(units, QUIET, PROTOCOL).kind != "promote"


def test_more_finalists_and_a_smaller_alpha_ask_for_more():
    one = boundaries(Protocol(max_finalists=1), Seen(n_aa=4))
    three = boundaries(PROTOCOL, Seen(n_aa=4))
    assert all(a < b for a, b in zip(one.promote, three.promote, strict=True))


def test_boundaries_are_the_same_each_time():
    assert boundaries(PROTOCOL, Seen(n_aa=3)) is boundaries(PROTOCOL, Seen(n_aa=3))
    many, more = Seen(n_aa=40, n_aa_slots=40), Seen(n_aa=400, n_aa_slots=400)
    assert boundaries(PROTOCOL, many) is boundaries(PROTOCOL, more)


def test_the_more_is_seen_of_the_noise_the_less_is_asked_of_a_gain():
    none, slots, control, both, more = (
        boundaries(PROTOCOL, seen).promote
        for seen in (
            Seen(unit_slots=False),
            Seen(),
            Seen(n_aa=2, unit_slots=False),
            Seen(n_aa=2, n_aa_slots=2),
            Seen(n_aa=4, n_aa_slots=4),
        )
    )
    for asked_more, asked_less in ((none, slots), (control, both), (slots, both), (both, more)):
        assert all(a > b for a, b in zip(asked_more, asked_less, strict=True))


def test_slots_that_vary_make_a_gain_uncertain_and_steady_ones_surer():
    units = [0.07, 0.08]
    noise = fit_noise([0.01, -0.01], [0.05, 0.06])
    assert decide(units, noise, PROTOCOL, slots=[0.055, 0.05]).kind == "promote"
    assert decide(units, noise, PROTOCOL, slots=[0.155, -0.05]).kind != "promote"
    assert decide(units, fit_noise([0.01, -0.01]), PROTOCOL).kind == "continue"


def test_how_slow_the_first_is_does_not_matter_if_it_is_always_so():
    a = decide([0.07, 0.08], fit_noise([0.01, -0.01], [0.05, 0.06]), PROTOCOL, slots=[0.05, 0.05])
    b = decide([0.07, 0.08], fit_noise([0.01, -0.01], [0.0, 0.01]), PROTOCOL, slots=[0.0, 0.0])
    assert a.speedup.low == pytest.approx(b.speedup.low)


def test_the_interval_covers_the_truth_at_whichever_look_one_stops():
    rng = np.random.default_rng(11)
    n, n_aa, truth = 20_000, 4, 0.2
    control = Noise(sd=0.03).control(rng, n, n_aa)
    units = Noise(sd=0.03).confirmation(rng, n, 8).gaining(truth)
    plan = boundaries(PROTOCOL, seen_of(units, control))
    missed = np.zeros(n, dtype=bool)
    for look, width in zip(plan.looks, plan.interval, strict=True):
        missed |= np.abs(at_look(units.first(look), control, 0.003).t(truth)) > width
    assert missed.mean() < 0.05
