import pytest

from infrarsi.estimate.calibration import Spread, Table, tables
from infrarsi.estimate.parts import Part, Parts

SPREAD = Spread({"one": 0.0, "far": 0.7}, (0.05, 0.5, 0.95), (-0.3, 0.0, 0.5))


def test_a_quantile_and_the_share_below_it_are_inverse():
    for features in ({"one": 1.0}, {"one": 1.0, "far": 1.0}):
        for level in (0.05, 0.3, 0.5, 0.8, 0.95):
            log_error = SPREAD.quantile(level, features)
            assert SPREAD.below(log_error, features) == pytest.approx(level)


def test_features_widen_the_spread():
    near, far = SPREAD.quantile(0.95, {"one": 1.0}), SPREAD.quantile(0.95, {"one": 1.0, "far": 1.0})
    assert far == pytest.approx(2.0138 * near, rel=1e-3)


def test_tails_reach_neither_zero_nor_one_at_once():
    one = {"one": 1.0}
    assert 0.95 < SPREAD.below(0.6, one) < SPREAD.below(2.0, one) < 1
    assert 0 < SPREAD.below(-2.0, one) < SPREAD.below(-0.4, one) < 0.05


def test_terms_are_corrected_by_their_own_and_the_shared_features():
    table = Table({"a": {"one": 0.1, "x": 0.2}}, {"whole": 0.3}, SPREAD)
    parts = Parts((Part("a", 2.0, {"x": 2.0}), Part("b", 3.0, {"x": 1.0})), {"whole": 1.0})
    found = table.corrected(parts)
    assert found["a"] == pytest.approx(2 * 2.71828 ** (0.1 + 0.4 + 0.3), rel=1e-4)
    assert found["b"] == pytest.approx(3 * 2.71828**0.3, rel=1e-4)


def test_the_shipped_tables_are_near_physics_and_cover_nine_of_ten():
    for table in tables():
        assert table.spread.levels[0] <= 0.05
        assert table.spread.levels[-1] >= 0.95
        assert list(table.spread.points) == sorted(table.spread.points)
        assert max(abs(v) for terms in table.terms.values() for v in terms.values()) < 4
