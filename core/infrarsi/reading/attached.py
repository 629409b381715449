"""`attached`: answers that are kept with the very thing they are about, and go when it goes.

For a file's tree, its nodes, scopes and calls, which are never changed once they are made. A
cache beside them would hold on to the trees of the last hundreds of keystrokes.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

S = TypeVar("S")
T = TypeVar("T")


def attached(ask: Callable[[S], T]) -> Callable[[S], T]:
    """Keep what a function says of an object in that object's own dictionary."""
    name = f"{ask.__module__}.{ask.__qualname__}"

    @wraps(ask)
    def answer(of: S) -> T:
        held = of.__dict__
        if name not in held:
            held[name] = ask(of)
        return cast("T", held[name])

    return answer
