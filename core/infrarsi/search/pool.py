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
_N_CLIMBS = 4
_N_STEPS = 5
_N_LAYOUT_STARTS = 2

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
    moves = space.changed_rows(starts)
    found = [moves, *(layouts.put_into(row) for row in starts[:_N_LAYOUT_STARTS])]
    if "pairing" not in without:
        found += [_pairs(space, row, beliefs) for row in starts[:_N_LAYOUT_STARTS]]
    if "seeds" not in without:
        found.append(np.stack([draw() for _ in range(_N_DRAWN)]))
        found.append(_crossed(starts))
    return space.allowed(np.concatenate(found))


def climb(space: SearchSpace, rows: Rows, layouts: Layouts, score: Scored) -> Rows:
    """Rows met when going uphill from the best of these, the best last; `score` ranks rows."""
    met = [rows]
    order = np.argsort(-score(rows), kind="stable")[:_N_CLIMBS]
    heads = rows[order]
    heights = score(heads)
    for step in range(_N_STEPS):
        higher: list[Rows] = []
        for head, height in zip(heads, heights, strict=True):
            near = space.changed_rows(head[None, :])
            if step == 0:
                near = np.concatenate([near, layouts.put_into(head)])
            near = space.allowed(near)
            if not len(near):
                continue
            scores = score(near)
            best = int(np.argmax(scores))
            if scores[best] > height + 1e-9:
                higher.append(near[best])
        if not higher:
            break
        heads = np.unique(np.stack(higher), axis=0)
        heights = score(heads)
        met.append(heads)
    return space.allowed(np.concatenate(met))


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
