import pytest

from infrarsi.contract import CATALOGUE
from infrarsi.contract.catalogue import violation


def test_every_code_is_listed_under_its_own_name_and_family():
    for name, code in CATALOGUE.items():
        assert code.code == name
        assert code.family
        assert code.summary.endswith(".")


def test_titles_are_told_apart():
    assert len({code.title for code in CATALOGUE.values()}) == len(CATALOGUE)


def test_an_unknown_code_cannot_be_reported():
    assert violation("W101", "x").family == "workload"
    with pytest.raises(KeyError):
        violation("W999", "x")
