"""Parallel layouts are changed whole: degrees that must multiply are never moved one by one.

The table of layouts is made once, from settings that are allowed: the degrees together with what
is tied to them (micro-batch, accumulation, pipeline chunks). Leaves out judging them.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from infrarsi.models.encoding import Rows
from infrarsi.search.roles import find_roles
from infrarsi.search.space import SearchSpace

_TIED = ("micro_batch_seqs", "grad_accum", "vpp", "zero_stage")
_MOST_LISTED = 6000
_N_DRAWN = 400
_MOST_KEPT = 400


class Layouts:
    """The table, and rows with each of its layouts put in."""

    def __init__(self, space: SearchSpace, draw: Callable[[], Rows]) -> None:
        """List or draw the table; `draw` gives a random allowed row."""
        self._columns = _layout_columns(space)
        self._table = self._listed(space) if len(self._columns) else np.zeros((0, 0), np.int64)
        if len(self._columns) and not len(self._table):
            drawn = np.stack([draw() for _ in range(_N_DRAWN)])
            self._table = np.unique(drawn[:, self._columns], axis=0)

    def put_into(self, row: Rows, keep: NDArray[np.int64] | None = None) -> Rows:
        """The row with each layout in turn (those at `keep` of the table), allowed or not."""
        table = self._table if keep is None else self._table[keep]
        rows = np.repeat(row[None, :], len(table), axis=0)
        rows[:, self._columns] = table
        return rows

    def __len__(self) -> int:
        return len(self._table)

    def _listed(self, space: SearchSpace) -> Rows:
        """Every layout that is allowed with the start's other values; empty where too many."""
        sizes = [len(space.knobs[c].choices) for c in self._columns]
        if np.prod(sizes, dtype=np.float64) > _MOST_LISTED:
            return np.zeros((0, len(self._columns)), dtype=np.int64)
        listed = np.indices(sizes).reshape(len(sizes), -1).T
        rows = np.repeat(space.start[None, :], len(listed), axis=0)
        rows[:, self._columns] = listed
        return np.unique(space.allowed(rows)[:, self._columns], axis=0)


def _layout_columns(space: SearchSpace) -> NDArray[np.int64]:
    """Columns of the degrees and of what is tied to them; none where there are no degrees."""
    degrees = [i for i, k in enumerate(space.knobs) if k.is_parallelism]
    if not degrees:
        return np.zeros(0, dtype=np.int64)
    roles = find_roles(space.knobs)
    tied = [
        i for i, k in enumerate(space.knobs) if k.name in roles and roles[k.name].column in _TIED
    ]
    return np.asarray(sorted({*degrees, *tied}), dtype=np.int64)
