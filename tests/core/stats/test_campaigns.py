import math

import numpy as np

from infrarsi.contract.contract import Protocol
from infrarsi.stats.campaigns import units_to_promote
from infrarsi.stats.confirmation import decide
from infrarsi.stats.noise import fit_noise
from infrarsi.stats.recorded import RecordedNoise
from infrarsi.stats.statistic import Units

PROTOCOL = Protocol()
PAIRS = tuple(0.05 + 0.02 * np.random.default_rng(0).standard_normal(40))


def confirmed_by_decide(units, slots, noise):
    """The loop of a real confirmation, a look at a time."""
    for look in PROTOCOL.looks:
        decision = decide(list(units[:look]), noise, PROTOCOL, slots=list(slots[:look]))
        if decision.kind != "continue":
            return (decision.kind == "promote") * look
    raise AssertionError("the last look always ends it")


def test_simulated_campaigns_end_exactly_as_real_ones():
    rng = np.random.default_rng(6)
    source = RecordedNoise(pairs=PAIRS)
    control = source.control(rng, 300, 2)
    units = source.confirmation(rng, 300, 8)
    units = Units(gains=units.gains + np.linspace(0.0, 0.15, 300)[:, None], slots=units.slots)
    promoted = units_to_promote(units, control, PROTOCOL)
    noises = [fit_noise(g, s) for g, s in zip(control.gains, control.slots, strict=True)]
    each = zip(units.gains, units.slots, noises, strict=True)
    assert list(promoted) == [confirmed_by_decide(*one) for one in each]
    assert set(promoted) == {0, 2, 4, 8}


def like(gains, spread=0.02):
    """A control of two units, and units of those gains, all slots alike."""
    gains = np.asarray(gains)
    control = Units(gains=np.full((len(gains), 2), spread), slots=np.zeros((len(gains), 2)))
    return Units(gains=gains, slots=np.zeros_like(gains)), control


def test_looks_that_are_not_affordable_promote_nothing():
    units, control = like(np.full((3, 8), math.log(1.2)))
    assert list(units_to_promote(units, control, PROTOCOL)) == [2, 2, 2]
    assert list(units_to_promote(units.first(1), control, PROTOCOL)) == [0, 0, 0]


def test_what_is_given_up_as_futile_is_not_promoted_later():
    units, control = like([[-0.3, -0.31, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0]])
    assert units_to_promote(units, control, PROTOCOL)[0] == 0
    fast = Units(gains=np.abs(units.gains), slots=units.slots)
    assert units_to_promote(fast, control, PROTOCOL)[0] == 2
