"""Structures are changed whole: degrees that must multiply are never moved one by one.

A structure is the parallel degrees together with what is tied to them (micro-batch, accumulation,
pipeline chunks, sharding) and what a layout pays for with (recomputation, sequence parallelism):
tensor parallelism may be worth its traffic only where the memory it frees lets recomputation go.
The table is made once, from settings that are allowed. Leaves out judging them.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from infrarsi.models.encoding import Rows
from infrarsi.models.physics import Physics
from infrarsi.search.roles import find_roles
from infrarsi.search.space import SearchSpace

_TIED = ("micro_batch_seqs", "grad_accum", "vpp", "zero_stage")
_PAID_WITH = ("act_ckpt_class", "sequence_parallel")
_MOST_LISTED = 8000
_N_DRAWN = 400
_MOST_ESTIMATED = 2000
_MOST_KEPT = 600
_STRIDE = 7919
_FULL = 0.2


class Layouts:
    """The table, and rows with each of its structures put in."""

    def __init__(
        self,
        space: SearchSpace,
        draw: Callable[[], Rows],
        physics: Physics | None = None,
        capacity_gib: float | None = None,
    ) -> None:
        """List or draw the table; `draw` gives a random allowed row.

        Of a large table those are kept that the physics expects to be fast within the capacity.
        """
        degrees, paid = _columns(space)
        self._columns = np.concatenate([degrees, paid])
        self._table = np.zeros((0, len(self._columns)), dtype=np.int64)
        if not len(degrees):
            return
        found = _listed(space, degrees)
        if not len(found):
            drawn = np.stack([draw() for _ in range(_N_DRAWN)])
            found = np.unique(drawn[:, degrees], axis=0)
        self._table = _crossed(space, found, paid)
        if len(self._table) > _MOST_KEPT:
            order = self._promising(space, physics, capacity_gib)
            self._table = self._table[np.sort(order[:_MOST_KEPT])]

    def put_into(self, row: Rows) -> Rows:
        """The row with each structure in turn, allowed or not."""
        rows = np.repeat(row[None, :], len(self._table), axis=0)
        rows[:, self._columns] = self._table
        return rows

    def _promising(
        self, space: SearchSpace, physics: Physics | None, capacity_gib: float | None
    ) -> NDArray[np.int64]:
        """Indices of the table, what the physics prefers first; evenly spread without physics."""
        n = len(self._table)
        spread = np.argsort(np.arange(n) * _STRIDE % n, kind="stable")
        if physics is None:
            return spread
        self._table = self._table[spread[:_MOST_ESTIMATED]]
        rows = space.encoding.canonical(self.put_into(space.start))
        seconds = physics.time_s(rows).sum(axis=1)
        if capacity_gib is not None:
            over = physics.memory_gib(rows).sum(axis=1) / capacity_gib - 1
            seconds = seconds * np.exp(np.maximum(over, 0.0) / _FULL)
        return np.argsort(seconds, kind="stable")


def _columns(space: SearchSpace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns of the degrees with what is tied to them, and of what is paid with; none without."""
    roles = find_roles(space.knobs)
    degrees: list[int] = []
    paid: list[int] = []
    for i, knob in enumerate(space.knobs):
        role = roles.get(knob.name)
        if knob.is_parallelism or (role is not None and role.column in _TIED):
            degrees.append(i)
        elif role is not None and role.column in _PAID_WITH:
            paid.append(i)
    if not any(k.is_parallelism for k in space.knobs):
        degrees, paid = [], []
    return np.asarray(degrees, dtype=np.int64), np.asarray(paid, dtype=np.int64)


def _listed(space: SearchSpace, columns: NDArray[np.int64]) -> Rows:
    """Every layout that is allowed with the start's other values; empty where too many."""
    sizes = [len(space.knobs[c].choices) for c in columns]
    if np.prod(sizes, dtype=np.float64) > _MOST_LISTED:
        return np.zeros((0, len(columns)), dtype=np.int64)
    listed = np.indices(sizes).reshape(len(sizes), -1).T
    rows = np.repeat(space.start[None, :], len(listed), axis=0)
    rows[:, columns] = listed
    return np.unique(space.allowed(rows)[:, columns], axis=0)


def _crossed(space: SearchSpace, layouts: Rows, paid: NDArray[np.int64]) -> Rows:
    """Each layout with each choice of what it is paid with."""
    sizes = [len(space.knobs[c].choices) for c in paid]
    ways = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), np.int64)
    left = np.repeat(layouts, len(ways), axis=0)
    return np.hstack([left, np.tile(ways, (len(layouts), 1))])
