import pytest

from infrarsi.models.encoding import EncodedKnob, Encoding
from infrarsi.models.validity import fit_validity

NAMES = ("a", "b", "c", "d")
ENCODING = Encoding(
    tuple(EncodedKnob(name=n, choices=(False, True), is_patch=True) for n in NAMES),
    dict.fromkeys(NAMES, False),
)


def on(*names):
    return dict.fromkeys(names, True)


def p(setting, good=(), broken=()):
    ways = [(s, "crashed") if isinstance(s, dict) else s for s in broken]
    return float(fit_validity(ENCODING, good, ways).p_valid(ENCODING.rows([setting]))[0])


def test_the_baseline_is_never_a_suspect():
    assert p({}, broken=[{}, on("a")]) == pytest.approx(1.0)


def test_a_lone_suspect_carries_the_whole_blame():
    assert p(on("a"), broken=[on("a")]) < 0.1
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
    assert p(on("a", "b"), good=[on("a"), on("b")], broken=broken) < 0.15


def test_more_untried_values_are_more_likely_to_break():
    assert p(on("a")) > p(on("a", "b")) > p(on("a", "b", "c"))


def test_two_breaks_with_one_value_in_common_blame_it_more():
    broken = [on("a", "b"), on("a", "c")]
    once = p(on("a"), broken=[on("a", "b")])
    assert p(on("a"), broken=broken) < 0.5 * once
    assert p(on("a"), broken=broken) < p(on("b"), broken=broken)
    assert p(on("d"), broken=broken) == pytest.approx(p(on("d")), abs=0.01)


def test_breaks_of_two_kinds_do_not_share_a_cause():
    crashes = [(on("a", "b"), "crashed"), (on("a", "c"), "crashed")]
    different = [(on("a", "b"), "crashed"), (on("a", "c"), "nan")]
    assert p(on("a"), broken=crashes) < p(on("a"), broken=different)


def test_three_together_are_blamed_only_where_every_pair_is_cleared():
    good = [on("a", "b"), on("a", "c"), on("b", "c")]
    broken = [on("a", "b", "c")]
    assert p(on("a", "b", "c"), good=good) == 1.0
    assert p(on("a", "b", "c"), good=good, broken=broken) < 0.95
    assert p(on("a", "b"), good=good, broken=broken) == 1.0


def test_a_change_that_needs_another_is_blamed_with_its_absence():
    broken = [on("a"), on("a", "c")]
    good = [on("a", "b")]
    assert p(on("a", "b"), good=good, broken=broken) == 1.0
    assert p(on("a", "d"), good=good, broken=broken) < 0.2


def test_suspects_are_the_changes_never_seen_in_a_good_trial():
    model = fit_validity(ENCODING, [on("a")], [(on("b", "c"), "crashed")])
    assert model.suspects(on("a")) == []
    first, *rest = model.suspects(on("a", "b"))
    assert first == [("b", True)]
    assert rest == [[("a", True), ("b", True)]]
