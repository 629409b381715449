"""`remembered`: questions of one program that several rules ask are answered once."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from infrarsi.reading import Program

P = ParamSpec("P")
T = TypeVar("T")


def remembered(ask: Callable[P, T]) -> Callable[P, T]:
    """Keep the answers of a function of a program (and of hashable arguments) with the program."""

    @wraps(ask)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        memo = cast("Program", args[0]).memo
        key: Any = (ask, args[1:], tuple(kwargs.items()))
        if key not in memo:
            memo[key] = ask(*args, **kwargs)
        return cast("T", memo[key])

    return answer
