"""The diverse start: several promising settings that are far from each other, never one incumbent.

Every seed is climbed to from another random layout under what is believed so far (claims and
physics, then what the first trials said), with a bonus for being far from the seeds before it.
"""

import numpy as np
from numpy.random import Generator

from infrarsi.models.encoding import Floats, Rows
from infrarsi.search.space import SearchSpace

_MOST_SEEDS = 6
_KNOBS_A_SEED = 4
_FAR = 3
_BONUS = 0.4


def n_seeds(space: SearchSpace) -> int:
    """Seeds besides the baseline: one for every few knobs."""
    return min(_MOST_SEEDS, 2 + len(space.knobs) // _KNOBS_A_SEED)


def diversity(space: SearchSpace, rows: Rows, used: Rows) -> Floats:
    """Bonus in nats for the distance to the nearest used row, shape (n,).

    Counted in structural knobs where there are several: the more of the others are changed at once,
    the likelier a trial breaks.
    """
    structural = space.is_structural
    counted = structural if structural.sum() >= _FAR else np.ones_like(structural)
    differences = (rows[:, None, counted] != used[None, :, counted]).sum(axis=2).min(axis=1)
    return _BONUS * np.minimum(differences / _FAR, 1.0)


def draw_from(space: SearchSpace, rng: Generator) -> Rows:
    """A random row: each knob keeps the baseline's value in one of two cases."""
    sizes = np.asarray([len(k.choices) for k in space.knobs], dtype=np.int64)
    for _ in range(20):
        drawn = rng.integers(0, sizes, size=(10, len(sizes)))
        kept = rng.random((10, len(sizes))) < 0.5
        found = space.allowed(np.where(kept, space.start, drawn))
        if len(found):
            return found[0]
    return space.start
