"""Fits the estimate's coefficients: a sum of terms, each times exp(coefficients x features).

In logs, with robust (Student-t) errors, normal priors that pull every coefficient to zero, so to
plain physics, and an offset for each source that is thrown away: what one source does to all of its
runs is not learned as a property of jobs. Gauss-Newton with damping; numpy only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from infrarsi.estimate.parts import Parts

SOURCE = "source="
Prior = Callable[[str, str], float]
"""Standard deviation of a coefficient by term ("" for the sum) and feature."""


@dataclass
class Design:
    """Rows as matrices: a size and a feature matrix for each term, and one for the sum."""

    terms: list[str]
    names: dict[str, list[str]]
    shared: list[str]
    sizes: np.ndarray
    features: dict[str, np.ndarray]
    offsets: np.ndarray

    def rows(self, chosen: np.ndarray) -> "Design":
        """Some of the rows."""
        features = {term: matrix[chosen] for term, matrix in self.features.items()}
        return Design(
            self.terms, self.names, self.shared, self.sizes[chosen], features, self.offsets[chosen]
        )


def design(parts: Sequence[Parts], sources: Sequence[str]) -> Design:
    """The matrices of these rows; every source has an offset of its own."""
    terms = sorted({part.term for row in parts for part in row.parts})
    names: dict[str, list[str]] = {term: ["one"] for term in terms}
    shared = [SOURCE + source for source in sorted(set(sources))]
    for row in parts:
        for part in row.parts:
            names[part.term] += [n for n in part.features if n not in names[part.term]]
        shared += [n for n in row.shared if n not in shared]
    made = Design(
        terms, names, shared, np.zeros((len(parts), len(terms))),
        {term: np.zeros((len(parts), len(names[term]))) for term in terms},
        np.zeros((len(parts), len(shared))),
    )  # fmt: skip
    for i, (row, source) in enumerate(zip(parts, sources, strict=True)):
        made.offsets[i, shared.index(SOURCE + source)] = 1.0
        for name, value in row.shared.items():
            made.offsets[i, shared.index(name)] = value
        for part in row.parts:
            made.sizes[i, terms.index(part.term)] += part.size
            made.features[part.term][i, 0] = 1.0
            for name, value in part.features.items():
                made.features[part.term][i, names[part.term].index(name)] = value
    return made


@dataclass
class Settings:
    """`noise` is the usual log error, `freedom` the Student-t's, `prior` the coefficients'."""

    prior: Prior
    noise: float
    freedom: float = 3.0
    steps: int = 40
    start: np.ndarray | None = field(default=None)


def fit(made: Design, log_observed: np.ndarray, weights: np.ndarray, how: Settings) -> np.ndarray:
    """The coefficients, term by term and then the sum's."""
    sds = np.array(
        [how.prior(t, n) for t in made.terms for n in made.names[t]]
        + [how.prior("", n) for n in made.shared]
    )
    theta = np.zeros(len(sds)) if how.start is None else how.start.copy()
    damping = 1.0 if how.start is None else 0.01
    nu = how.freedom

    def loss(at: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        log, slopes = predict(made, at)
        error = (log_observed - log) / how.noise
        data = np.sum(weights * (nu + 1) / 2 * np.log1p(error**2 / nu))
        return float(data + np.sum((at / sds) ** 2) / 2), error, slopes

    value, error, slopes = loss(theta)
    for _ in range(how.steps):
        inner = weights * (nu + 1) / (nu + error**2) / how.noise**2
        gradient = slopes.T @ (inner * error * how.noise) - theta / sds**2
        curvature = (slopes * inner[:, None]).T @ slopes + np.diag(1 / sds**2)
        before = value
        while damping < 1e6:
            damped = curvature + damping * np.diag(np.diag(curvature))
            tried = theta + np.linalg.solve(damped, gradient)
            new = loss(tried)
            if new[0] < value:
                theta, (value, error, slopes) = tried, new
                damping = max(damping / 3, 1e-6)
                break
            damping *= 4
        if before - value < 1e-5 * abs(before):
            break
    return theta


def predict(made: Design, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of the sum for each row, and its slopes by coefficient."""
    start, parts, blocks = 0, [], []
    for i, term in enumerate(made.terms):
        width = len(made.names[term])
        log = np.clip(made.features[term] @ theta[start : start + width], -8, 8)
        parts.append(made.sizes[:, i] * np.exp(log))
        start += width
    total = np.sum(parts, axis=0)
    for term, part in zip(made.terms, parts, strict=True):
        blocks.append((part / total)[:, None] * made.features[term])
    slopes = np.concatenate([*blocks, made.offsets], axis=1)
    return np.log(total) + made.offsets @ theta[start:], slopes


def coefficients(made: Design, theta: np.ndarray) -> dict[str, dict]:
    """As `data/estimate.json` has them; the sources' offsets are left behind."""
    start, terms = 0, {}
    for term in made.terms:
        names = made.names[term]
        terms[term] = _kept(names, theta[start : start + len(names)])
        start += len(names)
    shared = _kept(made.shared, theta[start:])
    return {
        "terms": terms,
        "shared": {n: v for n, v in shared.items() if not n.startswith(SOURCE)},
    }


def _kept(names: list[str], values: np.ndarray) -> dict[str, float]:
    return {n: round(float(v), 4) for n, v in zip(names, values, strict=True) if abs(v) > 5e-4}


def source_weights(sources: Sequence[str], root: float = 2.0) -> np.ndarray:
    """Weight of each row: a source of n rows weighs root x sqrt(n) in all, at most n."""
    counts = {source: sources.count(source) for source in set(sources)}
    return np.array([min(1.0, root / counts[s] ** 0.5) for s in sources])


def spread_of(
    log_errors: np.ndarray,
    features: Sequence[dict[str, float]],
    weights: np.ndarray,
    stretch: float = 1.0,
) -> dict[str, object]:
    """Scale by feature (ridge on log |error|) and quantiles of the scaled errors, stretched."""
    names = sorted({name for row in features for name in row})
    matrix = np.array([[row.get(name, 0.0) for name in names] for row in features])
    size = np.log(np.maximum(np.abs(log_errors), 0.02))
    ridge = np.diag([1e-3 if name == "one" else 6.0 for name in names])
    scaled = matrix * weights[:, None]
    scale = np.linalg.solve(scaled.T @ matrix + ridge, scaled.T @ size)
    points = stretch * log_errors / np.exp(matrix @ scale)
    levels = [0.01, 0.025, 0.05, *np.arange(0.1, 0.95, 0.05).round(2), 0.95, 0.975, 0.99]
    quantiles = np.maximum.accumulate([weighted_quantile(points, weights, q) for q in levels])
    rising = quantiles + 1e-6 * np.arange(len(levels))
    return {
        "scale": {n: round(float(v), 4) for n, v in zip(names, scale, strict=True)},
        "levels": [float(q) for q in levels],
        "points": [round(float(p), 6) for p in rising],
    }


def weighted_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """The value below which a share `level` of the weight lies."""
    order = np.argsort(values)
    below = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(level * np.sum(weights), below, values[order]))
