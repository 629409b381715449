"""The diverse start: all that is claimed to help at once, with larger batches, and far corners."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import EncodedKnob
from infrarsi.search.claims import SearchClaim
from infrarsi.search.space import SearchSpace

_MOST_CORNERS = 4


def n_seeds(space: SearchSpace) -> int:
    """Seeds besides the baseline: two composed ones, and a corner for every four knobs."""
    return 2 + min(_MOST_CORNERS, len(space.knobs) // 4)


def next_seed(
    space: SearchSpace,
    claims: Sequence[SearchClaim],
    used: Sequence[Setting],
    draw: Callable[[], Setting],
) -> Setting | None:
    """The next setting of the start that was not used yet, or None where it is over.

    Args:
        space: the space.
        claims: all claims.
        used: settings asked for or told, the baseline among them.
        draw: a random allowed setting.
    """
    if len(used) > n_seeds(space):
        return None
    keys = {space.key(s) for s in used}
    everything = claimed_together(space, claims)
    for seed in (everything, _grown(space, everything)):
        if space.key(seed) not in keys:
            return seed
    return _farthest(space, used, [draw() for _ in range(64)])


def claimed_together(space: SearchSpace, claims: Sequence[SearchClaim]) -> Setting:
    """All changes claimed to help, largest first, as far as they are allowed together.

    Savers of memory come along. Patches nobody says anything about count as helpful.
    """
    spoken = {c.knob for c in claims}
    wanted = [(c.knob, c.value) for c in sorted(claims, key=_usefulness) if _is_wanted(c)]
    wanted += [(k.name, True) for k in space.knobs if k.is_patch and k.name not in spoken]
    setting = space.baseline
    for name, value in wanted:
        changed = {**setting, name: value}
        if space.complete(setting)[name] == space.baseline[name] and space.allows(changed):
            setting = changed
    return setting


def _usefulness(claim: SearchClaim) -> float:
    return -claim.log_speedup


def _is_wanted(claim: SearchClaim) -> bool:
    return claim.log_speedup > 0 or (claim.memory_role == "saver" and claim.log_speedup > -0.1)


def _grown(space: SearchSpace, setting: Setting) -> Setting:
    """The setting with every ordered knob half way up from the baseline to its end."""
    for knob in space.knobs:
        grown = {**setting, knob.name: _half_way_up(knob, setting[knob.name])}
        if knob.ordered and space.allows(grown):
            setting = grown
    return setting


def _half_way_up(knob: EncodedKnob, value: Scalar) -> Scalar:
    index = knob.choices.index(value)
    return knob.choices[(index + len(knob.choices)) // 2]


def _farthest(
    space: SearchSpace, used: Sequence[Setting], pool: Sequence[Setting]
) -> Setting | None:
    """The drawn setting whose nearest used one is farthest, in number of differing knobs."""
    codes, taken = space.encoding.codes(pool), space.encoding.codes(used)
    distances = (codes[:, None, :] != taken[None, :, :]).sum(axis=2).min(axis=1)
    best = int(np.argmax(distances))
    return pool[best] if distances[best] > 0 else None


def draw_from(space: SearchSpace, rng: Generator) -> Setting:
    """A random setting: each knob keeps the baseline's value in one of two cases."""
    for _ in range(200):
        setting = space.baseline
        for knob in space.knobs:
            if rng.random() < 0.5:
                setting[knob.name] = knob.choices[int(rng.integers(len(knob.choices)))]
        if space.allows(setting):
            return setting
    return space.baseline
