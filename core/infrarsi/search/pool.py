"""Which settings are scored: all of a small space, else moves, layouts, pairs and random ones.

From there the most promising are climbed on, so that several moves at once are reached.
"""

from collections.abc import Callable

import numpy as np

from infrarsi.models.encoding import Floats, Rows
from infrarsi.search.beliefs import Beliefs
from infrarsi.search.layouts import Layouts
from infrarsi.search.pairing import paired
from infrarsi.search.space import SearchSpace

SMALL = 2048
_N_DRAWN = 60
_N_CLIMBS = 3
_N_STEPS = 10
_LEAST_GAIN = 1e-3
_N_PAIRED = 2

Scored = Callable[[Rows], Floats]


def gather(
    space: SearchSpace,
    starts: Rows,
    layouts: Layouts,
    draw: Callable[[], Rows],
    beliefs: Beliefs,
    without: frozenset[str] = frozenset(),
) -> Rows:
    """Distinct allowed rows, in a fixed order.

    Args:
        space: the space.
        starts: rows to move from, the best first, shape (n, n_knobs).
        layouts: parallel layouts of the space.
        draw: a random allowed row.
        beliefs: for pairing.
        without: parts of the search left out, see `Searcher`.
    """
    if space.n_settings <= SMALL:
        return space.all_rows()
    if "seeds" in without:
        starts = starts[:1]
    found = [space.changed_rows(starts), layouts.put_into(starts[0])]
    if "pairing" not in without:
        found += [_pairs(space, row, beliefs) for row in starts[:_N_PAIRED]]
    if "seeds" not in without:
        found.append(np.stack([draw() for _ in range(_N_DRAWN)]))
        found.append(_crossed(starts))
    return space.allowed(np.concatenate(found))


def climb(space: SearchSpace, rows: Rows, score: Scored) -> tuple[Rows, Floats]:
    """The rows, those met going uphill from the best of each structure, and all their scores."""
    scores = score(rows)
    met, scored = [rows], [scores]
    heads, heights = _heads(space, rows, scores)
    for _ in range(_N_STEPS):
        near = [space.allowed(space.changed_rows(head[None, :])) for head in heads]
        scores = score(np.concatenate(near))
        best = _bests(scores, [len(rows) for rows in near])
        higher = [
            (rows[place], height)
            for rows, (place, height), old in zip(near, best, heights, strict=True)
            if height > old + _LEAST_GAIN
        ]
        if not higher:
            break
        heads = np.stack([row for row, _ in higher])
        heights = np.asarray([height for _, height in higher])
        met.append(heads)
        scored.append(heights)
    return np.concatenate(met), np.concatenate(scored)


def _bests(scores: Floats, sizes: list[int]) -> list[tuple[int, float]]:
    """Place and score of the best of each run of `sizes` scores; minus infinity if empty."""
    found: list[tuple[int, float]] = []
    begin = 0
    for size in sizes:
        own = scores[begin : begin + size]
        found.append((int(np.argmax(own)), float(own.max())) if size else (0, -np.inf))
        begin += size
    return found


def _heads(space: SearchSpace, rows: Rows, scores: Floats) -> tuple[Rows, Floats]:
    """The best rows, each of another structure."""
    structural = space.is_structural
    seen: set[bytes] = set()
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        key = rows[i, structural].tobytes()
        if key not in seen or not structural.any():
            seen.add(key)
            kept.append(int(i))
        if len(kept) == _N_CLIMBS:
            break
    return rows[kept], scores[kept]


def _pairs(space: SearchSpace, row: Rows, beliefs: Beliefs) -> Rows:
    return paired(row, space.allowed(space.changed_rows(row[None, :])), beliefs)


def _crossed(starts: Rows) -> Rows:
    """Each two of the starts: the second's values put into the first, knob by knob alternately."""
    columns = np.arange(starts.shape[1])
    made = [
        np.where(columns % 2 == parity, one, other)[None, :]
        for one in starts
        for other in starts
        if one is not other
        for parity in (0, 1)
    ]
    return np.concatenate([starts[:0], *made])
