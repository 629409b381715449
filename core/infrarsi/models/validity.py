"""P(valid): what breaks, learned from which values stood together in a good trial and which not.

Every break has a cause: a value, a pair of values, or (where all of those are cleared) three.
A cause that stood in a good trial is cleared. Each way to break (crash, compile error, NaN,
rejection) has causes of its own; breaks of one way share a cause while their suspects intersect.
That is a noisy-or network (Pearl 1988, section 4.3): the odds of each suspect are found by belief
propagation, exact where suspects form a tree and close to it else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Encoding, Floats, Rows

Cause = tuple[int, ...]
"""One-hot columns that break where they stand together: one, two or three."""

_PATCH = 0.04
_VALUE = 0.03
_PAIR = 0.004
_PAIR_WITH_BASELINE = 0.0006
_TRIPLE = 0.0004
_BY_CHANCE = 3e-4
_N_SWEEPS = 20
_CERTAIN = 1e9


@dataclass(frozen=True)
class ValidityModel:
    """`log_ok` (n_values, n_values) holds values on the diagonal and pairs beside it."""

    encoding: Encoding
    log_ok: Floats
    triples: Mapping[Cause, float]

    def p_valid(self, rows: Rows) -> Floats:
        """Probability that a trial neither crashes nor is rejected, shape (n,)."""
        x = self.encoding.one_hot(rows)
        own = x @ np.diag(self.log_ok)
        pairs = ((x @ self.log_ok) * x).sum(axis=1) - own
        log_p = own + pairs / 2
        for cause, log_ok in self.triples.items():
            log_p = log_p + log_ok * x[:, list(cause)].prod(axis=1)
        return np.exp(np.minimum(log_p, 0.0))

    def suspects(self, setting: Setting) -> list[list[tuple[str, Scalar]]]:
        """Changes and pairs of changes of a setting that may break, most suspicious first."""
        x = self.encoding.one_hot(self.encoding.rows([setting]))[0]
        columns = np.flatnonzero(x * self.encoding.is_changed)
        causes = [(int(i),) for i in columns] + [
            (int(i), int(j)) for i, j in combinations(columns, 2)
        ]
        found = [(self._log_ok(cause), cause) for cause in causes if self._log_ok(cause) < 0]
        return [[self.encoding.values[i] for i in cause] for _, cause in sorted(found)]

    def _log_ok(self, cause: Cause) -> float:
        return float(self.log_ok[min(cause), max(cause)])


def fit_validity(
    encoding: Encoding,
    good: Sequence[Setting],
    broken: Sequence[tuple[Setting, str]],
) -> ValidityModel:
    """Fit on trials that ran to their end (`good`) and that broke, with the way they did.

    Out of memory is neither. The baseline's own values and pairs are never suspects.

    Args:
        encoding: the space and its baseline.
        good: settings that ran.
        broken: settings that broke, and how ("crashed", "nan", ...).
    """
    prior = _prior(encoding)
    stood = encoding.one_hot(encoding.rows(good))
    prior[(stood.T @ stood) > 0] = 0.0
    ways = tuple(dict.fromkeys(way for _, way in broken))
    share = 1 / (len(ways) + 1)
    log_ok = np.log1p(-prior * share)
    triples: dict[Cause, float] = {}
    for way in ways:
        settings = [s for s, w in broken if w == way]
        x = encoding.one_hot(encoding.rows(settings))
        blamed = _blame(encoding, x, prior * share, stood)
        own = np.log1p(-prior * share)
        for cause, chance in blamed.items():
            log_chance = float(np.log1p(-min(chance, 0.999)))
            i, j = min(cause), max(cause)
            if len(cause) < 3:
                own[i, j] = own[j, i] = log_chance
            else:
                triples[cause] = triples.get(cause, 0.0) + log_chance
        log_ok = log_ok + own
    return ValidityModel(encoding, log_ok, triples)


def _prior(encoding: Encoding) -> Floats:
    """Chance of each value (diagonal) and pair to be a cause, shape (n_values, n_values)."""
    changed = encoding.is_changed.astype(np.float64)
    both, one = np.outer(changed, changed), np.add.outer(changed, changed) == 1
    prior = _PAIR * both + _PAIR_WITH_BASELINE * one
    is_patch = {k.name: k.is_patch for k in encoding.knobs}
    singles = [
        (_PATCH if is_patch[name] else _VALUE) * changed[i]
        for i, (name, _) in enumerate(encoding.values)
    ]
    np.fill_diagonal(prior, singles)
    return prior


def _blame(encoding: Encoding, x: Floats, prior: Floats, stood: Floats) -> dict[Cause, float]:
    """Posterior chance of every suspect of these breaks, which all broke in one way."""
    suspects: dict[Cause, float] = {}
    for row in x:
        suspects.update(_suspects(np.flatnonzero(row), prior))
    for row in x:
        if not any(row[list(cause)].all() for cause in suspects):
            suspects.update(_triples(np.flatnonzero(row * encoding.is_changed), stood))
    if not suspects:
        return {}
    causes = list(suspects)
    stands = np.stack([x[:, list(cause)].prod(axis=1) for cause in causes], axis=1) > 0
    chances = _propagate(stands, np.asarray([suspects[c] for c in causes], dtype=np.float64))
    return dict(zip(causes, chances.tolist(), strict=True))


def _suspects(columns: NDArray[np.int64], prior: Floats) -> dict[Cause, float]:
    found: dict[Cause, float] = {}
    block = np.triu(prior[np.ix_(columns, columns)])
    for a, b in zip(*np.nonzero(block), strict=True):
        i, j = int(columns[a]), int(columns[b])
        found[(i,) if i == j else (i, j)] = float(block[a, b])
    return found


def _triples(columns: NDArray[np.int64], stood: Floats) -> dict[Cause, float]:
    return {
        (int(a), int(b), int(c)): _TRIPLE
        for a, b, c in combinations(columns, 3)
        if not stood[:, [a, b, c]].all(axis=1).any()
    }


def _propagate(stands: NDArray[np.bool_], prior: Floats) -> Floats:
    """Chance of each suspect given that every break has a cause among those that stand in it.

    Args:
        stands: shape (n_breaks, n_suspects).
        prior: shape (n_suspects,).
    """
    own = np.log(prior) - np.log1p(-prior)
    to_suspect = np.zeros(stands.shape)
    for _ in range(_N_SWEEPS):
        to_break = own[None, :] + to_suspect.sum(axis=0)[None, :] - to_suspect
        log_not = np.where(stands, -np.logaddexp(0.0, to_break), 0.0)
        others_not = np.exp(log_not.sum(axis=1, keepdims=True) - log_not)
        explained = 1.0 - (1.0 - _BY_CHANCE) * others_not
        new = np.where(stands, np.minimum(-np.log(explained), np.log(_CERTAIN)), 0.0)
        to_suspect = 0.5 * to_suspect + 0.5 * new
    return 1.0 / (1.0 + np.exp(-(own + to_suspect.sum(axis=0))))
