"""Whether an expression that gathers parameters gathers fewer than it did."""

import ast
from collections.abc import Iterator

from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk

_WRAPPING = {"module", "_orig_mod"}
_GATHER = {"parameters", "named_parameters"}


def narrowing(now: ast.expr, was: ast.expr) -> tuple[str, bool] | None:
    """(what narrows it, whether that is certain), both written out; None where nothing does."""
    roots, held = set(_chains(now)), set(_chains(was))
    if roots and held and all(_below(chain, held) for chain in roots):
        chain = min(roots)
        return f"only those of `{'.'.join(chain[-2:])}`", True
    cuts = [text for text in _cuts(now) if text not in set(_cuts(was))]
    if cuts:
        return f"[{cuts[0]}]", True
    tests, before = list(_tests(now)), set(_tests(was))
    extra = [test for test in tests if test not in before and "requires_grad" not in test]
    if extra and len(tests) == 1:
        return f"if {extra[0]}"[:80], True
    return None


def _chains(node: ast.expr) -> Iterator[tuple[str, ...]]:
    """What stands before `.parameters()`, as attribute names from the outermost on."""
    for inner in walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=base, attr=attr)) if attr in _GATHER:
                yield _chain(base)
            case _:
                pass


def _chain(base: ast.expr) -> tuple[str, ...]:
    names: list[str] = []
    while True:
        match base:
            case ast.Attribute(value=inner, attr=attr):
                names += [] if attr in _WRAPPING else [attr]
                base = inner
            case ast.Subscript(value=inner):
                names.append("[]")
                base = inner
            case ast.Call(args=[inner, *_], func=ast.Name() | ast.Attribute()) if _wraps(base):
                base = inner
            case _:
                return tuple(reversed(names))


def _wraps(call: ast.Call) -> bool:
    name = unparse(call.func).rpartition(".")[2]
    return name in {"compile", "DistributedDataParallel", "DDP", "fully_shard", "prepare"}


def _below(chain: tuple[str, ...], held: set[tuple[str, ...]]) -> bool:
    return any(len(chain) > len(h) and chain[: len(h)] == h for h in held) and chain not in held


def _cuts(node: ast.expr) -> Iterator[str]:
    for inner in walk(node):
        match inner:
            case ast.Subscript(value=value, slice=ast.Slice() as part) if list(_chains(value)):
                yield unparse(part)
            case _:
                pass


def _tests(node: ast.expr) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.comprehension):
            yield from (unparse(test) for test in inner.ifs)
