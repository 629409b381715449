"""What a unit of two process pairs says of the gain and of the start order."""

import math

import pytest

from infrarsi.pair import ProcessPair, Turn, Unit

GAIN, SLOT = math.log(1.5), math.log(1.08)


def pair(first: str) -> ProcessPair:
    """The candidate is 1.5 times as fast; whichever starts first is 8 % slower."""
    logs = {"baseline": GAIN, "candidate": 0.0}
    logs[first] += SLOT
    turns = tuple(
        Turn(side=side, steps_s=(0.1 * math.exp(logs[side]),) * 3)
        for side in ("baseline", "candidate", "candidate", "baseline")
    )
    return ProcessPair(started_first=first, turns=turns)


@pytest.mark.parametrize("order", [("baseline", "candidate"), ("candidate", "baseline")])
def test_a_unit_tells_the_gain_from_the_slowness_of_the_job_started_first(
    order: tuple[str, str],
) -> None:
    unit = Unit(pairs=(pair(order[0]), pair(order[1])))
    assert unit.log_ratio() == pytest.approx(GAIN)
    assert unit.slot_log_ratio() == pytest.approx(SLOT)


def test_one_pair_alone_mixes_both() -> None:
    assert pair("baseline").log_ratio() == pytest.approx(GAIN + SLOT)
    assert pair("candidate").log_ratio() == pytest.approx(GAIN - SLOT)
