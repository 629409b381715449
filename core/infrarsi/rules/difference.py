"""What a change added, took away or altered: calls and statements of both sides, matched.

Both sides are spelled with known values written out, so that renaming, moving and re-expressing
leave no difference.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from infrarsi.reading import Call
from infrarsi.reading.walking import walk


@dataclass(frozen=True, eq=False)
class Altered:
    """A call that stands on both sides with other arguments."""

    now: Call
    was: Call


def added(
    now: Iterable[Call], was: Iterable[Call], key: Callable[[Call], str] | None = None
) -> Iterator[Call]:
    """Calls of `now` beyond those of `was` with the same key (the signature by default)."""
    key = key or _signature
    left = Counter(key(call) for call in was)
    for call in now:
        if left[key(call)] > 0:
            left[key(call)] -= 1
        else:
            yield call


def removed(
    now: Iterable[Call], was: Iterable[Call], key: Callable[[Call], str] | None = None
) -> Iterator[Call]:
    """Calls of `was` that `now` has no more."""
    return added(was, now, key)


def altered(now: Iterable[Call], was: Iterable[Call]) -> Iterator[Altered]:
    """Calls of the same callee that differ only in their arguments, paired in order."""
    now, was = list(now), list(was)
    fresh, gone = list(added(now, was)), list(removed(now, was))
    for call in fresh:
        twin = next((old for old in gone if old.callee == call.callee), None)
        if twin is not None:
            gone.remove(twin)
            yield Altered(call, twin)


def callee(call: Call) -> str:
    """A key under which calls of the same function are the same, whatever their arguments."""
    return call.callee


def keywords(call: Call) -> dict[str, str]:
    """The keyword arguments as spelled."""
    return {
        keyword.arg: call.program.spell(keyword.value, call.site.scope)
        for keyword in call.site.call.keywords
        if keyword.arg is not None
    }


def mentions(node: ast.AST, *names: str) -> bool:
    """Whether a name or attribute of these is read in a piece of code."""
    return any(
        (isinstance(inner, ast.Name) and inner.id in names)
        or (isinstance(inner, ast.Attribute) and inner.attr in names)
        for inner in walk(node)
    )


def _signature(call: Call) -> str:
    return call.signature
