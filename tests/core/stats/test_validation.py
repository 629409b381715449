import math

import pytest

from infrarsi.contract.contract import Protocol
from infrarsi.stats.recorded import RecordedNoise
from infrarsi.stats.simulation import Noise
from infrarsi.stats.validation import FalsePromotions, simulate_campaigns

PROTOCOL = Protocol()

# Recorded A/A process pairs: step time of the job started first over the other's.
RECORDED = tuple(
    math.log(x)
    for x in (1.082, 1.083, 1.096, 1.119, 1.115, 1.055, 1.048, 1.046, 1 / 0.979, 1 / 0.949)
)


@pytest.mark.parametrize("n_aa", [0, 1, 2, 4, 8])
def test_a_campaign_without_gain_promotes_in_at_most_one_percent(n_aa):
    result = simulate_campaigns(Noise(sd=0.02), n_aa, PROTOCOL, 20_000, seed=1)
    assert result.upper_bound() <= 0.01


@pytest.mark.parametrize("n_aa", [2, 6])
def test_it_holds_for_units_made_of_recorded_pairs(n_aa):
    result = simulate_campaigns(RecordedNoise(pairs=RECORDED), n_aa, PROTOCOL, 20_000, seed=2)
    assert result.upper_bound() <= 0.01


def test_it_holds_when_the_noise_is_below_the_floor_and_when_it_is_huge():
    for sd in (0.0005, 0.3):
        result = simulate_campaigns(Noise(sd=sd), 4, PROTOCOL, 20_000, seed=3)
        assert result.upper_bound() <= 0.01


def test_the_simulation_would_notice_a_protocol_that_promotes_too_easily():
    lax = PROTOCOL.model_copy(update={"alpha": 0.1})
    assert simulate_campaigns(Noise(sd=0.02), 4, lax, 20_000, seed=1).upper_bound() > 0.03


def test_the_bound_is_exact_for_none_and_all():
    assert FalsePromotions(n_false=0, n_campaigns=100).upper_bound() == pytest.approx(
        1 - 0.05 ** (1 / 100)
    )
    assert FalsePromotions(n_false=5, n_campaigns=5).upper_bound() == 1.0
