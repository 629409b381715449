import math

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.stats.campaigns import units_to_promote
from infrarsi.stats.confirmation import decide
from infrarsi.stats.noise import NoiseModel
from infrarsi.stats.recorded import RecordedNoise

PROTOCOL = Protocol()
PAIRS = tuple(0.05 + 0.02 * np.random.default_rng(0).standard_normal(40))


def confirmed_by_decide(units, sum_squares, n_aa):
    """The loop of a real confirmation, a look at a time."""
    noise = NoiseModel(sum_squares=sum_squares, n_aa=n_aa)
    for look in PROTOCOL.looks:
        decision = decide(list(units[:look]), noise, PROTOCOL)
        if decision.kind != "continue":
            return (decision.kind == "promote") * look
    raise AssertionError("the last look always ends it")


def test_simulated_campaigns_end_exactly_as_real_ones():
    rng = np.random.default_rng(6)
    source = RecordedNoise(pairs=PAIRS)
    control = source.control(rng, 300, 2)
    gains = np.linspace(0.0, 0.2, 300)[:, None]
    units = gains + source.confirmation(rng, 300, 8)
    promoted = units_to_promote(units, control, 2, PROTOCOL)
    one_by_one = [confirmed_by_decide(u, s, 2) for u, s in zip(units, control, strict=True)]
    assert list(promoted) == one_by_one
    assert set(promoted) == {0, 2, 4, 8}


def test_looks_that_are_not_affordable_promote_nothing():
    units = np.full((3, 8), math.log(1.2))
    control = np.full(3, 2 * 0.02**2)
    assert list(units_to_promote(units, control, 2, PROTOCOL)) != [0, 0, 0]
    assert list(units_to_promote(units[:, :1], control, 2, PROTOCOL)) == [0, 0, 0]


def test_what_is_given_up_as_futile_is_not_promoted_later():
    hopeless_then_fast = np.array([[-0.3, -0.31, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0]])
    assert units_to_promote(hopeless_then_fast, np.array([0.001]), 2, PROTOCOL)[0] == 0
    fast = np.abs(hopeless_then_fast)
    assert units_to_promote(fast, np.array([0.001]), 2, PROTOCOL)[0] == 2
