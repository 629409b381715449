"""W116: training reads the baseline's data.

Generated or constant rows need no loader and are easy to learn. What is looked for: rows made by
a tensor constructor where rows were fetched, and switches named after mock or synthetic data.

Mend it by reading the data again.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh, pieces
from infrarsi.rules.regions import fetch_scopes
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import changed_settings

CODE = "W116"
_WORDS = {"mock", "synthetic", "fake", "dummy"}
_MAKERS = {
    *("randint", "rand", "randn", "zeros", "ones", "full", "arange", "empty", "randint_like"),
    *("zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "linspace"),
}
_SHAPED = {"randint", "rand", "randn", "zeros", "ones", "full"}
_HELD = "the contract holds the baseline's data"


def find(change: Change) -> Iterator[Violation]:
    """An error where the model is fed a constructor's result, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    for entry in changed_settings(now, was):
        if entry.words & _WORDS and entry.now.value:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; {_HELD}.",
                place=entry.now.place,
                contract_place=entry.was.place,
            )
    for piece in fresh(_made(now), _made(was)):
        severity: Severity = "error" if _is_shaped(piece.node) else "warning"
        yield violation(
            CODE,
            f"Rows are made up by `{piece.text[:60]}`; {_HELD}.",
            severity=severity,
            place=piece.place,
        )


@remembered
def _made(program: Program) -> list[Fragment]:
    """Constructors among what the step fetches, and what fetching functions return."""
    regions = tuple((fetch.scope, fetch.value) for fetch in program.work.flow.fetches)
    found = pieces(program, regions, _is_maker, ast.Call)
    for scope in fetch_scopes(program):
        bodies = [event.value for event in scope.returns if event.value is not None]
        found += [
            Fragment(program, scope, part)
            for body in bodies
            for part in (body.elts if isinstance(body, ast.Tuple) else [body])
            if _is_maker(part) and _is_position(Fragment(program, scope, part))
        ]
        bodies += [
            event.value
            for events in scope.events.values()
            for event in events
            if event.value is not None
        ]
        found += [
            piece
            for piece in pieces(
                program, tuple((scope, body) for body in bodies), _is_maker, ast.Call
            )
            if not _is_position(piece)
        ]
    return found


def _is_maker(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "np" | "numpy"), attr=name)):
            return name in _MAKERS and not _is_scalar(node)
        case _:
            return False


def _is_scalar(node: ast.Call) -> bool:
    """Whether a constructor makes a single number, as sums start with."""
    first = node.args[0] if node.args else None
    return (
        first is None
        or (isinstance(first, ast.Tuple | ast.List) and len(first.elts) < 1)
        or (isinstance(first, ast.Constant) and first.value == 1 and len(node.args) == 1)
    )


def _is_shaped(node: ast.AST) -> bool:
    """Whether a constructor gives rows by itself: a shape of two dimensions."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in _SHAPED:
        return False
    sizes = [*node.args, *(k.value for k in node.keywords)]
    if any(isinstance(size, ast.Tuple | ast.List) and len(size.elts) >= 2 for size in sizes):
        return True
    return node.func.attr != "randint" and node.func.attr != "full" and len(node.args) >= 2


def _is_position(piece: Fragment) -> bool:
    """Whether what is made serves as positions into the data: one-dimensional draws, offsets."""
    node = piece.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in {"empty", "empty_like", "zeros_like", "zeros"}:
        return True
    return node.func.attr in {"randint", "arange", "rand"} and not _is_shaped(node)
