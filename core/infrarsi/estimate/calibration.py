"""The corrections learned from public runs, and how wide the truth lies around them.

`data/estimate.json` holds one coefficient a feature for time and for memory, and quantiles of the
left-out errors; `benchmarks/fit_estimate.py` makes it. Evaluated in plain Python, because the
editor side loads it. Leaves out the fit.
"""

import json
import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from infrarsi.estimate.parts import Features, Parts

_WIDEST = 1.0
"""Log of the largest scale: beyond it an interval says nothing more."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of log(observed / estimated) over its scale; `levels` and `points` rise together.

    Args:
        scale: coefficients of log scale by feature.
        levels: probabilities.
        points: the quantiles at them.
    """

    scale: dict[str, float]
    levels: tuple[float, ...]
    points: tuple[float, ...]

    def width(self, features: Features) -> float:
        """Scale of the log error of a job with these features."""
        return math.exp(min(_dot(self.scale, features), _WIDEST))

    def quantile(self, level: float, features: Features) -> float:
        """Log error that a share `level` of jobs stays below."""
        return self.width(features) * _interpolated(level, self.levels, self.points)

    def below(self, log_error: float, features: Features) -> float:
        """Share of jobs whose log error stays below; tails fall off as a normal's."""
        point = log_error / self.width(features)
        first, last = self.points[0], self.points[-1]
        if point < first:
            return self.levels[0] * math.exp(2.0 * (point - first))
        if point > last:
            return 1 - (1 - self.levels[-1]) * math.exp(2.0 * (last - point))
        return _interpolated(point, self.points, self.levels)


@dataclass(frozen=True, slots=True)
class Table:
    """Coefficients by term and feature, coefficients of the sum, and the spread."""

    terms: dict[str, dict[str, float]]
    shared: dict[str, float]
    spread: Spread

    def corrected(self, parts: Parts) -> dict[str, float]:
        """Each term times what its features and those of the sum say."""
        whole = math.exp(_dot(self.shared, parts.shared))
        found: dict[str, float] = {}
        for part in parts.parts:
            own = self.terms.get(part.term, {})
            log = own.get("one", 0.0) + _dot(own, part.features)
            found[part.term] = found.get(part.term, 0.0) + part.size * whole * math.exp(log)
        return found


@lru_cache(maxsize=1)
def tables() -> tuple[Table, Table]:
    """Time's and memory's table, read once."""
    text = files("infrarsi").joinpath("data", "estimate.json").read_text(encoding="utf-8")
    document = json.loads(text)
    return read_table(document["time"]), read_table(document["memory"])


def read_table(document: dict[str, Any]) -> Table:
    """One table from its JSON."""
    return Table(
        terms=document["terms"],
        shared=document["shared"],
        spread=_spread(document["spread"]),
    )


def _spread(document: dict[str, Any]) -> Spread:
    return Spread(document["scale"], tuple(document["levels"]), tuple(document["points"]))


def _dot(coefficients: dict[str, float], features: Features) -> float:
    return sum(coefficients.get(name, 0.0) * x for name, x in features.items())


def _interpolated(x: float, xs: tuple[float, ...], ys: tuple[float, ...]) -> float:
    k = bisect_left(xs, x)
    if k == 0:
        return ys[0]
    if k == len(xs):
        return ys[-1]
    share = (x - xs[k - 1]) / (xs[k] - xs[k - 1])
    return ys[k - 1] + share * (ys[k] - ys[k - 1])
