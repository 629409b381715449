import math

import numpy as np
import pytest

from infrarsi.contract.contract import Protocol
from infrarsi.stats.recorded import WORLDS, RecordedNoise, World, centre
from infrarsi.stats.validation import simulate_campaigns

PROTOCOL = Protocol()
SLOT = 0.06
PAIRS = tuple(SLOT + 0.02 * np.random.default_rng(0).standard_normal(40))
PAIR_SD = float(np.std(PAIRS, ddof=1))


def units(world, n_campaigns=20_000, n_units=8, seed=1):
    noise = RecordedNoise(pairs=PAIRS, world=world)
    return noise.confirmation(np.random.default_rng(seed), n_campaigns, n_units).gains


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("n_aa", [1, 2])
def test_in_every_world_few_campaigns_promote_what_gains_nothing(name, n_aa):
    noise = RecordedNoise(pairs=PAIRS, world=WORLDS[name])
    result = simulate_campaigns(noise, n_aa, PROTOCOL, 20_000, seed=4)
    assert result.upper_bound() <= 0.01


@pytest.mark.parametrize("name", WORLDS)
def test_units_centre_on_one_though_the_job_started_first_is_slower(name):
    found = units(WORLDS[name]).mean(axis=1)
    assert abs(found.mean()) < 5 * found.std() / math.sqrt(found.size)


def test_a_plain_unit_is_half_the_difference_of_two_recorded_pairs():
    possible = {(a - b) / 2 for a in PAIRS for b in PAIRS}
    drawn = units(World(), n_campaigns=10).ravel()
    assert all(min(abs(x - y) for y in possible) < 1e-12 for x in drawn)


def test_control_and_confirmation_are_drawn_alike():
    noise = RecordedNoise(pairs=PAIRS)
    control = noise.control(np.random.default_rng(2), 20_000, 4)
    units = noise.confirmation(np.random.default_rng(3), 20_000, 4)
    assert control.gains.std() == pytest.approx(units.gains.std(), rel=0.02)
    assert control.slots.std() == pytest.approx(units.slots.std(), rel=0.02)


def test_slots_tell_of_the_slowness_and_stray_as_much_as_gains():
    drawn = RecordedNoise(pairs=PAIRS).confirmation(np.random.default_rng(3), 20_000, 4)
    assert drawn.slots.mean() == pytest.approx(float(np.mean(PAIRS)), rel=0.01)
    assert drawn.slots.std() == pytest.approx(drawn.gains.std(), rel=0.02)


def test_what_differs_between_the_sides_alike_in_both_orders_shows_in_gains_only():
    plain, apart = (
        RecordedNoise(pairs=PAIRS, world=world).confirmation(np.random.default_rng(3), 20_000, 4)
        for world in (World(), World(unit_noise=2.0))
    )
    assert apart.gains.std() > 1.8 * plain.gains.std()
    assert apart.slots.std() == pytest.approx(plain.slots.std(), rel=0.02)


MANY_STRAY = (*PAIRS[:36], 0.5, -0.3, 0.4, 0.3)
TWO_KINDS = tuple(np.where(np.random.default_rng(1).random(40) < 0.3, 0.12, 0.0) + PAIRS)


@pytest.mark.parametrize("pairs", [MANY_STRAY, TWO_KINDS], ids=["many_stray", "two_kinds"])
@pytest.mark.parametrize("name", ["bootstrap", "drift", "unlike_sides", "all_together"])
def test_it_holds_where_pairs_stray_far_or_come_in_two_kinds(pairs, name):
    noise = RecordedNoise(pairs=pairs, world=WORLDS[name])
    for n_aa in (1, 2):
        assert simulate_campaigns(noise, n_aa, PROTOCOL, 20_000, seed=5).upper_bound() <= 0.01


def test_heavy_tails_reach_beyond_what_was_recorded():
    assert np.abs(units(World(tail_df=3.0))).max() > 3 * np.abs(units(World())).max()


def test_a_trend_of_the_slowness_stays_in_all_units_of_a_campaign():
    noise_of_mean = PAIR_SD / math.sqrt(2) / math.sqrt(8)
    found = units(World(slot_trend=0.5)).mean(axis=1).std()
    assert found == pytest.approx(math.hypot(noise_of_mean, PAIR_SD * 0.5 / 2), rel=0.05)


def test_a_slowness_that_varies_between_pairs_is_not_cancelled():
    assert units(World(slot_log_sd=0.5)).std() > 1.3 * units(World()).std()
    assert units(World(slot_factor_most=3.0)).std() == pytest.approx(units(World()).std(), rel=0.02)


def test_a_walk_between_the_sides_grows_with_the_units():
    walking = units(World(unit_walk=0.5))
    assert walking[:, -1].std() > 1.4 * walking[:, 0].std()


def test_the_centre_of_a_sample_has_students_interval():
    found = centre([1.0, 2.0, 3.0])
    assert found.mean == pytest.approx(2.0)
    assert found.high - found.mean == pytest.approx(4.302653 / math.sqrt(3))
    assert found.low == pytest.approx(2 * found.mean - found.high)
    assert found.n == 3
