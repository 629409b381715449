import pytest

from infrarsi.models.encoding import EncodedKnob, Encoding
from infrarsi.models.validity import fit_validity

NAMES = ("a", "b", "c", "d")
ENCODING = Encoding(
    tuple(EncodedKnob(name=n, choices=(False, True)) for n in NAMES), dict.fromkeys(NAMES, False)
)


def on(*names):
    return dict.fromkeys(names, True)


def p(setting, good=(), broken=()):
    return float(fit_validity(ENCODING, good, broken).p_valid([setting])[0])


def test_the_baseline_is_never_a_suspect():
    assert p({}, broken=[{}, on("a")]) == 1.0


def test_a_lone_suspect_carries_the_whole_blame():
    assert p(on("a"), broken=[on("a")]) < 0.05
    assert p(on("b"), broken=[on("a")]) > 0.9


def test_values_and_pairs_of_a_good_trial_are_cleared():
    assert p(on("a", "b"), good=[on("a", "b")]) == 1.0
    assert p(on("a", "b"), good=[on("a"), on("b")]) < 1.0


def test_a_good_trial_moves_the_blame_to_the_pair():
    broken = [on("a", "b")]
    shared = p(on("a"), broken=broken)
    cleared = p(on("a"), good=[on("a"), on("b")], broken=broken)
    assert shared < 0.6
    assert cleared == 1.0
    assert p(on("a", "b"), good=[on("a"), on("b")], broken=broken) < 0.05


def test_more_untried_values_are_more_likely_to_break():
    assert p(on("a")) > p(on("a", "b")) > p(on("a", "b", "c"))


def test_two_breaks_with_one_value_in_common_blame_it_more():
    broken = [on("a", "b"), on("a", "c")]
    assert p(on("a"), broken=broken) < p(on("b"), broken=broken)
    assert p(on("d"), broken=broken) == pytest.approx(0.96)
