"""Bayesian linear regression with a small residual, in closed form.

    y = offset + features · w + r + noise,   w ~ N(prior mean, diag(prior sd²)),
    r a Gaussian process with covariance tau² exp(-differences / length)

written as one Gaussian process (Rasmussen and Williams 2006, chapter 2). The residual is what
combinations do beyond their parts. Leaves out how priors are chosen.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from infrarsi.models.encoding import Floats


@dataclass(frozen=True, kw_only=True)
class Prior:
    """`mean` and `sd` have one entry a column; `offset` is what is known of the baseline."""

    mean: Floats
    sd: Floats
    offset: float
    offset_sd: float
    residual_sd: float
    residual_length: float = 1.5

    def at(self, features: Floats) -> Floats:
        """Prior mean, shape (n,)."""
        return self.offset + features @ self.mean

    def covariance(
        self, a: Floats, a_codes: NDArray[np.int64], b: Floats, b_codes: NDArray[np.int64]
    ) -> Floats:
        """Prior covariance of two sets of points, shape (n_a, n_b)."""
        differences = (a_codes[:, None, :] != b_codes[None, :, :]).sum(axis=2)
        residual = self.residual_sd**2 * np.exp(-differences / self.residual_length)
        return self.offset_sd**2 + (a * self.sd**2) @ b.T + residual


@dataclass(frozen=True)
class Posterior:
    """The regression given observations `y` with noise variances, all of shape (n,)."""

    prior: Prior
    features: Floats
    codes: NDArray[np.int64]
    y: Floats
    noise_variance: Floats

    @cached_property
    def _inverse(self) -> Floats:
        covariance = self.prior.covariance(self.features, self.codes, self.features, self.codes)
        factor = cho_factor(covariance + np.diag(self.noise_variance), lower=True)
        return np.asarray(cho_solve(factor, np.eye(len(self.y))), dtype=np.float64)

    @cached_property
    def _surprise(self) -> Floats:
        return self.y - self.prior.at(self.features)

    @cached_property
    def log_evidence(self) -> float:
        """Log marginal likelihood of `y`."""
        _, log_det = np.linalg.slogdet(self._inverse)
        quadratic = self._surprise @ self._inverse @ self._surprise
        return float(0.5 * (log_det - quadratic - len(self.y) * np.log(2 * np.pi)))

    def predict(self, features: Floats, codes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of the noise-free value at each point, shapes (n,)."""
        cross = self.prior.covariance(features, codes, self.features, self.codes)
        mean = self.prior.at(features) + cross @ self._inverse @ self._surprise
        own = self.prior.offset_sd**2 + (features**2) @ self.prior.sd**2
        own = own + self.prior.residual_sd**2
        variance = own - ((cross @ self._inverse) * cross).sum(axis=1)
        return mean, np.maximum(variance, 1e-12)

    def effects(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of `rows @ w`, shapes (n_rows,)."""
        gain = (self.prior.sd**2)[:, None] * self.features.T
        mean = self.prior.mean + gain @ self._inverse @ self._surprise
        covariance = np.diag(self.prior.sd**2) - gain @ self._inverse @ gain.T
        variance = ((rows @ covariance) * rows).sum(axis=1)
        return rows @ mean, np.sqrt(np.maximum(variance, 0.0))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Each point's noise-free mean and variance given all the others, shapes (n,)."""
        own = np.diag(self._inverse)
        mean = self.y - (self._inverse @ self._surprise) / own
        return mean, np.maximum(1.0 / own - self.noise_variance, 1e-12)
