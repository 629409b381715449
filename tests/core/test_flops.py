import pytest

from infrarsi.errors import ImpossibleMfu
from infrarsi.flops import flops_per_token, mfu
from infrarsi.wire.probe import FlopCount


def test_half_of_attention_is_masked_and_does_not_count():
    ranks = [FlopCount(total=600, attention=200), FlopCount(total=400, attention=0)]
    assert flops_per_token(ranks, 10) == 90


def test_utilisation_is_of_all_devices():
    assert mfu(1000.0, 1e9, 1e12, 2) == pytest.approx(0.5)


def test_more_than_everything_is_an_error_that_says_what_to_do():
    with pytest.raises(ImpossibleMfu, match=r"120 %.*roof again") as raised:
        mfu(1200.0, 1e9, 1e12, 1)
    assert raised.value.exit_code == 3
