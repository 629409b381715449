import math

import numpy as np
import pytest

from infrarsi.contract.contract import Protocol
from infrarsi.stats.confirmation import decide
from infrarsi.stats.noise import fit_noise
from infrarsi.stats.power import promotion_chances, resolvable, smallest_gain
from infrarsi.stats.recorded import RecordedNoise
from infrarsi.stats.simulation import Noise

PROTOCOL = Protocol()
NOISE = fit_noise([0.02, -0.02, 0.02, -0.02])


def test_more_minutes_resolve_smaller_gains():
    gains = [resolvable(NOISE, 60.0, minutes, PROTOCOL) for minutes in (2, 4, 8)]
    assert gains[0] > gains[1] > gains[2] > PROTOCOL.min_gain_frac


def test_more_noise_resolves_less():
    loud = fit_noise([0.06, -0.06, 0.06, -0.06])
    assert resolvable(loud, 60.0, 8, PROTOCOL) > 2 * resolvable(NOISE, 60.0, 8, PROTOCOL)


def test_a_budget_below_the_first_look_resolves_nothing():
    assert resolvable(NOISE, 60.0, 1.9, PROTOCOL) is None


def test_unmeasured_noise_resolves_nothing():
    assert resolvable(fit_noise([]), 60.0, 100, PROTOCOL) is None


def test_the_gain_named_is_promoted_in_four_of_five_tries():
    gain = resolvable(NOISE, 60.0, 2, PROTOCOL)
    units = Noise(sd=NOISE.sd).confirmation(np.random.default_rng(3), 2000, 2)
    units = units.gaining(math.log1p(gain))
    promoted = sum(
        decide(list(gains), NOISE, PROTOCOL, slots=list(slots)).kind == "promote"
        for gains, slots in zip(units.gains, units.slots, strict=True)
    )
    assert promoted / 2000 == pytest.approx(0.8, abs=0.03)


def test_the_spread_has_a_floor_and_counts_a_bias_as_noise():
    assert fit_noise([0.0001, -0.0001]).sd == pytest.approx(0.003)
    assert fit_noise([0.05, 0.05]).sd == pytest.approx(0.05)
    assert fit_noise([]).sd is None


def test_slots_tell_of_the_spread_too_but_their_mean_does_not():
    assert fit_noise([0.01, -0.01], [0.07, 0.05]).sd == pytest.approx(math.sqrt(4e-4 / 3))
    assert fit_noise([0.01, -0.01], [0.07, 0.07]).sd == pytest.approx(math.sqrt(2e-4 / 3))


SOURCE = RecordedNoise(pairs=tuple(0.05 + 0.015 * np.random.default_rng(0).standard_normal(40)))


def test_the_power_curve_rises_with_the_gain_and_with_the_units():
    gains = (0.0, 0.02, 0.03, 0.1, 0.2)
    few = promotion_chances(SOURCE, 2, PROTOCOL, 4, gains, n_campaigns=4000)
    many = promotion_chances(SOURCE, 2, PROTOCOL, 8, gains, n_campaigns=4000)
    assert list(few) == sorted(few)
    assert few[0] <= 0.005
    assert many[2] > few[2] + 0.05
    assert many[-1] > 0.95


def test_below_the_first_look_no_gain_is_confirmed():
    assert promotion_chances(SOURCE, 2, PROTOCOL, 1, (1.0,), n_campaigns=100) == (0.0,)
    assert smallest_gain(SOURCE, 2, PROTOCOL, 1, 0.9, n_campaigns=100) is None


def test_the_smallest_gain_is_confirmed_with_the_power_asked_for():
    gain = smallest_gain(SOURCE, 2, PROTOCOL, 8, 0.9, n_campaigns=4000)
    at, below = promotion_chances(SOURCE, 2, PROTOCOL, 8, (gain, 0.8 * gain), n_campaigns=4000)
    assert at == pytest.approx(0.9, abs=0.005)
    assert below < 0.85
