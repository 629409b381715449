"""S409: errors are not swallowed in favour of another path.

A `try` around a piece of training whose `except` goes on in another way hides that the intended
way never runs: fewer rows, half a sequence or no update at all look like a fast step. Newly
catching errors in the step, in the model or while fetching, and catching everything anywhere, is
looked for. `finally`, errors that are raised again, and the end of an iterator are no fallback.

Mend it by letting the error end the run.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.regions import data_regions, forward_regions, nodes_in, step_regions
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import all_pieces, one_a_line, only_reports, shown, warned

CODE = "S409"
_ENDS = {
    *("StopIteration", "KeyboardInterrupt", "Empty", "Full", "SystemExit", "GeneratorExit"),
    *("StopAsyncIteration", "ImportError", "ModuleNotFoundError", "BrokenPipeError"),
}
_BROAD = {"", "Exception", "BaseException", "RuntimeError", "Error"}
_HELD = "the contract holds that errors are not swallowed in favour of another path"


def find(change: Change) -> Iterator[Violation]:
    """An error where an update or a backward call is dropped in silence; else a warning."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for piece in fresh(_handlers(now, was), _handlers(was, now)):
        source = piece.scope.source
        block = source.parents[piece.node]
        severity: Severity = "error" if _drops_work(piece.node, block) else "warning"
        yield warned(
            CODE,
            f"`{shown(_head(piece.node))}` goes on in another way where something fails; {_HELD}.",
            piece.place,
            severity,
        )
    for piece in fresh(_suppressed(now, was), _suppressed(was, now)):
        yield warned(CODE, f"`{shown(piece.written)}` hides errors; {_HELD}.", piece.place)


@remembered
def _handlers(program: Program, other: Program) -> list[Fragment]:
    """Handlers in training code, and those that catch everything, apart from harmless ones."""
    found = [
        piece
        for piece in all_pieces(program, other, lambda _: True, ast.ExceptHandler)
        if not _is_harmless(piece)
    ]
    if not found:
        return []
    regions = (*step_regions(program), *forward_regions(program), *data_regions(program))
    busy = {node for _, node in nodes_in(regions, ast.ExceptHandler)}
    return [
        piece
        for piece in found
        if piece.node in busy
        or (isinstance(piece.node, ast.ExceptHandler) and set(_caught(piece.node)) & _BROAD)
    ]


def _is_harmless(piece: Fragment) -> bool:
    handler = piece.node
    assert isinstance(handler, ast.ExceptHandler)
    block = piece.scope.source.parents.get(handler)
    if set(_caught(handler)) <= _ENDS:
        return True
    if any(isinstance(statement, ast.Raise) for statement in handler.body):
        return True
    body = block.body if isinstance(block, ast.Try | ast.TryStar) else []
    return bool(body) and all(isinstance(s, ast.Import | ast.ImportFrom) for s in body)


def _caught(handler: ast.ExceptHandler) -> list[str]:
    kinds = handler.type
    if kinds is None:
        return [""]
    each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return [unparse(kind).rpartition(".")[2] for kind in each]


def _drops_work(handler: ast.AST, block: ast.AST) -> bool:
    """Whether what fails was an update or a backward call, and nothing is done about it."""
    assert isinstance(handler, ast.ExceptHandler)
    silent = only_reports([s for s in handler.body if not isinstance(s, ast.Continue)])
    body = block.body if isinstance(block, ast.Try | ast.TryStar) else []
    works = any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"backward", "step"}
        for statement in body
        for node in walk(statement)
    )
    return silent and works and bool(set(_caught(handler)) & _BROAD)


def _head(node: ast.AST) -> str:
    return unparse(node).partition("\n")[0]


@remembered
def _suppressed(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _suppresses, ast.Call)


def _suppresses(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and unparse(node.func).rpartition(".")[2] == "suppress"
        and bool({unparse(a).rpartition(".")[2] for a in node.args} - _ENDS)
    )
