from dataclasses import replace

import numpy as np
import pytest

from infrarsi.models.encoding import EncodedKnob, Encoding
from infrarsi.models.gaussian import Posterior, Prior, heavier_tails, points

KNOBS = (
    EncodedKnob(name="rows", choices=(1, 2, 4, 8), ordered=True),
    EncodedKnob(name="fast", choices=(False, True), is_patch=True),
)
ENCODING = Encoding(KNOBS, {"rows": 2, "fast": False})
SETTINGS = [{"rows": 2}, {"rows": 4}, {"rows": 8, "fast": True}, {"fast": True}]
Y = np.array([1.0, 0.9, 0.3, 0.5])


def posterior(residual_sd=0.1, noise=0.01):
    x = points(ENCODING, ENCODING.rows(SETTINGS))
    n = x.features.shape[1]
    prior = Prior(
        mean=np.full(n, -0.1),
        sd=np.full(n, 0.3),
        offset=1.0,
        offset_sd=0.5,
        residual_sd=residual_sd,
    )
    return Posterior(prior, x, Y, np.full(len(Y), noise))


def test_the_baseline_is_zero_and_doublings_count_from_it():
    assert not ENCODING.features(ENCODING.rows([{}])).any()
    columns = [(c.knob.name, c.value) for c in ENCODING.columns]
    assert columns == [("rows", None), ("rows", 1), ("rows", 4), ("rows", 8), ("fast", True)]
    assert ENCODING.features(ENCODING.rows([{"rows": 8, "fast": True}])).tolist() == [
        [2, 0, 0, 1, 1]
    ]
    assert ENCODING.features(ENCODING.rows([{"rows": 1}])).tolist() == [[-1, 1, 0, 0, 0]]


def test_without_residual_it_is_the_textbook_regression():
    fitted = posterior(residual_sd=0.0)
    x = np.hstack([np.ones((4, 1)), fitted.x.features])
    prior_precision = np.diag([1 / 0.25, *([1 / 0.09] * 5)])
    prior_mean = np.array([1.0, *([-0.1] * 5)])
    precision = x.T @ x / 0.01 + prior_precision
    weights = np.linalg.solve(precision, x.T @ Y / 0.01 + prior_precision @ prior_mean)
    rows = np.eye(5)
    mean, sd = fitted.effects(rows)
    assert mean == pytest.approx(weights[1:])
    assert sd == pytest.approx(np.sqrt(np.diag(np.linalg.inv(precision)))[1:])
    predicted, variance = fitted.predict(fitted.x)
    assert predicted == pytest.approx(x @ weights)
    assert variance == pytest.approx(np.diag(x @ np.linalg.inv(precision) @ x.T))


def test_leaving_one_out_equals_fitting_without_it():
    full = posterior()
    mean, variance = full.leave_one_out()
    rest = [0, 1, 3]
    kept = points(ENCODING, ENCODING.rows([SETTINGS[i] for i in rest]))
    without = Posterior(full.prior, kept, Y[rest], full.noise_variance[rest])
    expected_mean, expected_variance = without.predict(full.x.take(slice(2, 3)))
    assert mean[2] == pytest.approx(expected_mean[0])
    assert variance[2] == pytest.approx(expected_variance[0])


def test_evidence_is_the_density_of_what_was_seen():
    full = posterior()
    covariance = full.prior.covariance(full.x, full.x)
    covariance += np.diag(full.noise_variance + full.prior.residual_sd**2)
    surprise = Y - full.prior.at(full.x)
    expected = -0.5 * (
        surprise @ np.linalg.solve(covariance, surprise)
        + np.log(np.linalg.det(covariance))
        + 4 * np.log(2 * np.pi)
    )
    assert full.log_evidence == pytest.approx(expected)


def test_every_two_changes_together_have_an_effect_of_their_own():
    x = points(ENCODING, ENCODING.rows([{"rows": 4}, {"rows": 4, "fast": True}, {"fast": True}]))
    plain = Prior(mean=np.zeros(5), sd=np.ones(5), offset=0.0, offset_sd=0.0, residual_sd=0.0)
    paired = replace(plain, pair_sd=0.5)
    added = paired.covariance(x, x) - plain.covariance(x, x)
    assert added == pytest.approx(np.diag([0.0, 0.25, 0.0]))
    assert paired.variance(x) == pytest.approx(np.diag(paired.covariance(x, x)))


def test_a_large_effect_widens_its_own_prior_only():
    fitted = posterior(residual_sd=0.0, noise=1e-4)
    start = replace(fitted.prior, sd=np.full(5, 0.02))
    tight = replace(fitted, prior=start)
    tailed = heavier_tails(tight, start, np.ones(5))
    assert tailed.sd[4] > 1.15 * start.sd[4]
    assert tailed.sd[1] < 1.05 * start.sd[1]
