"""Settings that are sure to run out of memory because a leaner one did: never tried again.

Only what can be told without a model: a larger micro-batch, a patch claimed to be hungry put on,
one claimed to save taken off, the rest being equal.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from infrarsi.frozen import Scalar
from infrarsi.models.encoding import Floats, Rows
from infrarsi.search.claims import SearchClaim
from infrarsi.search.outcomes import Told
from infrarsi.search.roles import find_roles
from infrarsi.search.space import SearchSpace

_SIGNS = {"hungry": 1.0, "saver": -1.0}


def is_dominated(
    space: SearchSpace, rows: Rows, told: Sequence[Told], claims: Sequence[SearchClaim]
) -> NDArray[np.bool_]:
    """Whether a row needs at least as much memory as one that ran out of it, shape (n,)."""
    dominated = np.zeros(len(rows), dtype=np.bool_)
    failed = space.encoding.rows([t.setting for t in told if t.status == "oom"])
    hunger = _hunger(space, claims)
    if not len(failed) or not len(rows) or not any(h is not None for h in hunger):
        return dominated
    for lean in failed:
        least = np.ones(len(rows), dtype=np.bool_)
        for column, table in enumerate(hunger):
            own, other = rows[:, column], lean[column]
            least &= (own == other) if table is None else table[own] >= table[other]
        dominated |= least
    return dominated


def _hunger(space: SearchSpace, claims: Sequence[SearchClaim]) -> list[Floats | None]:
    """Per knob: a number for each choice that grows with the memory it needs, where known."""
    roles = find_roles(space.knobs)
    found: list[Floats | None] = []
    for knob in space.knobs:
        role = roles.get(knob.name)
        signs = {c.value: _SIGNS[c.memory_role] for c in claims if _speaks(c, knob.name)}
        if role is not None and role.column == "micro_batch_seqs":
            found.append(_sizes(knob.choices))
        elif knob.is_patch and signs:
            found.append(np.asarray([signs.get(v, 0.0) for v in knob.choices]))
        else:
            found.append(None)
    return found


def _sizes(choices: Sequence[Scalar]) -> Floats | None:
    """The choices as numbers; nothing where one is none ("auto")."""
    numbers = [v for v in choices if isinstance(v, int | float)]
    return np.asarray(numbers, dtype=np.float64) if len(numbers) == len(choices) else None


def _speaks(claim: SearchClaim, knob: str) -> bool:
    return claim.knob == knob and claim.memory_role in _SIGNS
