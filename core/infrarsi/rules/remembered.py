"""`remembered`: questions of one program that several rules ask are answered once."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from infrarsi.reading import Program

P = ParamSpec("P")
T = TypeVar("T")


def remembered(ask: Callable[P, T]) -> Callable[P, T]:
    """Keep the answers of a function of a program (and of hashable arguments) with the program."""

    @wraps(ask)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        programs = [given for given in args if isinstance(given, Program)]
        newest = next((p for p in programs if p.trace.memory is not None), programs[0])
        return newest.once((ask, args, tuple(kwargs.items())), lambda: ask(*args, **kwargs))

    return answer
