"""Which settings are scored: all of a small space, else moves of the best and random changes."""

from collections.abc import Callable, Iterable, Sequence

from infrarsi.knobs import Setting
from infrarsi.search.space import SearchSpace

_SMALL = 4096
_MOST_SECOND_MOVES = 1500
_N_RANDOM = 300


def gather(
    space: SearchSpace,
    best: Sequence[Setting],
    excluded: Sequence[Setting],
    draw: Callable[[], Setting],
) -> list[Setting]:
    """Distinct allowed settings that were not excluded, in a fixed order.

    Args:
        space: the space.
        best: settings to move from, the best first.
        excluded: settings already tried or asked for.
        draw: a random allowed setting.
    """
    if space.n_settings <= _SMALL:
        return _distinct(space, space.all_settings(), excluded)
    nearby = [one for setting in best for one in space.moves(setting)]
    second = [two for one in space.moves(best[0]) for two in space.moves(one)] if best else []
    step = max(1, len(second) // _MOST_SECOND_MOVES)
    drawn = [draw() for _ in range(_N_RANDOM)]
    return _distinct(space, [*nearby, *second[::step], *drawn], excluded)


def _distinct(
    space: SearchSpace, settings: Iterable[Setting], excluded: Sequence[Setting]
) -> list[Setting]:
    seen = {space.key(s) for s in excluded}
    kept: list[Setting] = []
    for setting in settings:
        key = space.key(setting)
        if key not in seen:
            seen.add(key)
            kept.append(setting)
    return kept
