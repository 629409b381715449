import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from infrarsi.search.acquisition import log_expected_improvement


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (1.0, 0.3), (-0.5, 0.1), (2.0, 0.5)])
def test_it_is_the_expected_improvement(mean, sd):
    expected, _ = quad(lambda x: -x * norm.pdf(x, mean, sd), mean - 12 * sd, 0, epsabs=0)
    (value,) = log_expected_improvement(np.array([mean]), np.array([sd]), 0.0)
    assert value == pytest.approx(np.log(expected), rel=1e-4)


def test_far_in_the_tail_it_still_falls_without_a_break():
    means = np.linspace(4, 60, 2000)
    values = log_expected_improvement(means, np.ones(2000), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) < 0).all()
