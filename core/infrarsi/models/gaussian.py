"""Bayesian linear regression with a small residual, in closed form.

    y = offset + features · w + pairs + g + r + noise,   w ~ N(prior mean, diag(prior sd²)),
    pairs: every two changes together have an effect of their own, N(0, pair sd²),
    g a Gaussian process over the structural knobs, covariance sd² exp(-differences / length):
    settings of one structure share it; r what is a setting's own, independent of all others

written as one Gaussian process (Rasmussen and Williams 2006, chapter 2). Leaves out how priors
are chosen.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from infrarsi.models.encoding import Encoding, Floats, Rows

_FREEDOM = 3.0
_FARTHEST = 9.0
_AS_EXPECTED = 8.0
_STRUCTURE_LENGTH = 2.0


@dataclass(frozen=True)
class Points:
    """Settings as a regression sees them: `features` (n, p), one-hot values of all knobs (n, q).

    `changed` is without the baseline's own values, `structure` without the knobs that are not
    structural.
    """

    features: Floats
    changed: Floats
    structure: Floats

    def __len__(self) -> int:
        return len(self.features)

    def take(self, kept: slice) -> "Points":
        """Some of the points."""
        return Points(self.features[kept], self.changed[kept], self.structure[kept])


def points(encoding: Encoding, rows: Rows, *extra: Floats) -> Points:
    """Points whose features are the encoding's and further columns, each of shape (n, any)."""
    one_hot = encoding.one_hot(rows)
    features = np.hstack([encoding.features(rows), *extra])
    return Points(features, one_hot * encoding.is_changed, one_hot * encoding.is_structural)


@dataclass(frozen=True, kw_only=True)
class Prior:
    """`mean` and `sd` have one entry a column; `offset` is what is known of the baseline."""

    mean: Floats
    sd: Floats
    offset: float
    offset_sd: float
    residual_sd: float
    structure_sd: float = 0.0
    pair_sd: float = 0.0

    def at(self, x: Points) -> Floats:
        """Prior mean, shape (n,)."""
        return self.offset + x.features @ self.mean

    def covariance(self, a: Points, b: Points) -> Floats:
        """Prior covariance of two sets of points but for what is each one's own, (n_a, n_b)."""
        made = self.offset_sd**2 + (a.features * self.sd**2) @ b.features.T
        if self.structure_sd:
            differences = a.structure[:1].sum() - a.structure @ b.structure.T
            made = made + self.structure_sd**2 * np.exp(-differences / _STRUCTURE_LENGTH)
        if self.pair_sd:
            shared = a.changed @ b.changed.T
            made = made + self.pair_sd**2 * shared * (shared - 1) / 2
        return made

    def variance(self, x: Points) -> Floats:
        """Prior variance of each point, shape (n,)."""
        n_changed = x.changed.sum(axis=1)
        pairs = self.pair_sd**2 * n_changed * (n_changed - 1) / 2
        own = self.offset_sd**2 + self.residual_sd**2 + self.structure_sd**2 + pairs
        return own + (x.features**2) @ self.sd**2


@dataclass(frozen=True)
class Posterior:
    """The regression given observations `y` with noise variances, all of shape (n,)."""

    prior: Prior
    x: Points
    y: Floats
    noise_variance: Floats

    @cached_property
    def _factor(self) -> Floats:
        own = self.noise_variance + self.prior.residual_sd**2
        covariance = self.prior.covariance(self.x, self.x) + np.diag(own)
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    @cached_property
    def _inverse(self) -> Floats:
        half = np.linalg.inv(self._factor)
        return half.T @ half

    @cached_property
    def _surprise(self) -> Floats:
        return self.y - self.prior.at(self.x)

    @cached_property
    def _weights(self) -> Floats:
        return self._inverse @ self._surprise

    @cached_property
    def log_evidence(self) -> float:
        """Log marginal likelihood of `y`."""
        log_det = 2 * np.log(np.diag(self._factor)).sum()
        quadratic = self._surprise @ self._weights
        return float(-0.5 * (log_det + quadratic + len(self.y) * np.log(2 * np.pi)))

    def predict(self, x: Points) -> tuple[Floats, Floats]:
        """Mean and variance of the noise-free value at each point, shapes (n,)."""
        cross = self.prior.covariance(x, self.x)
        mean = self.prior.at(x) + cross @ self._weights
        variance = self.prior.variance(x) - ((cross @ self._inverse) * cross).sum(axis=1)
        return mean, np.maximum(variance, 1e-12)

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each column's effect, shapes (p,)."""
        gain = (self.prior.sd**2)[:, None] * self.x.features.T
        mean = self.prior.mean + gain @ self._weights
        variance = self.prior.sd**2 - ((gain @ self._inverse) * gain).sum(axis=1)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def effects(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of `rows @ w`, shapes (n_rows,)."""
        gain = (rows * self.prior.sd**2) @ self.x.features.T
        mean = rows @ self.prior.mean + gain @ self._weights
        variance = (rows**2) @ self.prior.sd**2 - ((gain @ self._inverse) * gain).sum(axis=1)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Each point's noise-free mean and variance given all the others, shapes (n,)."""
        own = np.diag(self._inverse)
        mean = self.y - self._weights / own
        return mean, np.maximum(1.0 / own - self.noise_variance, 1e-12)


def heavier_tails(posterior: Posterior, start: Prior, columns: Floats) -> Prior:
    """`start` with its sds as a Student-t prior would have them, given a fit so far.

    One step of expectation-maximisation over each effect's own scale (Lange, Little and Taylor
    1989), on the columns where `columns` is 1: an effect the data show to be large is let be.
    """
    mean, sd = posterior.coefficients
    squared = ((mean - start.mean) ** 2 + sd**2) / np.maximum(start.sd, 1e-12) ** 2
    scale = np.sqrt((_FREEDOM + squared) / (_FREEDOM + 1.0))
    return replace(start, sd=start.sd * np.where(columns > 0, np.maximum(scale, 1.0), 1.0))


def spread(posterior: Posterior, n: int | None = None) -> float:
    """Root mean square of the leave-one-out surprises (of the first `n` points), near one.

    Shrunk towards one as if some points had come as expected; by it intervals are scaled.
    """
    if not len(posterior.y):
        return 1.0
    mean, variance = posterior.leave_one_out()
    squared = (posterior.y - mean) ** 2 / (variance + posterior.noise_variance)
    counted = np.minimum(squared[:n], _FARTHEST)
    return float(np.sqrt((_AS_EXPECTED + counted.sum()) / (_AS_EXPECTED + len(counted))))
