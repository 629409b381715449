"""W109: as many updates as in the baseline.

A run that plans fewer updates, or leaves the loop early, is shorter and not faster. The planned
number is read from the loop's bound; new ways out of the loop are looked for as well.

Mend it by restoring the number and taking the `break` out.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh, pieces
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import changed_settings

CODE = "W109"
_NAMES = {
    *("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs", "max_tokens"),
    *("train_tokens", "total_tokens", "time_budget", "limit_train_batches", "overfit_batches"),
}


def find(change: Change) -> Iterator[Violation]:
    """An error for another number of updates, an error or a warning for a new way out."""
    if change.sides is None:
        return
    now, was = change.sides
    told = list(_planned(change)) or list(_named(now, was))
    yield from told
    for leave in fresh(_exits(now), _exits(was)):
        yield violation(
            CODE,
            f"The training loop is now left early ({_reason(leave)}); the contract holds as many "
            "updates as the baseline makes.",
            severity="error" if _is_on_progress(leave.text) else "warning",
            place=leave.place,
        )


def _planned(change: Change) -> Iterator[Violation]:
    assert change.was is not None
    fact, held = change.fact("updates"), change.was.reading.fact("updates")
    now, was = change.count(fact), change.count(held) if held is not None else None
    if now is None or was is None or now == was:
        return
    restored = change.set_value("updates", was, f"Restore {was} updates")
    yield violation(
        CODE,
        f"{now} updates are planned instead of {was}; the contract holds {was}.",
        place=fact.place,
        contract_place=held.place if held is not None else None,
        fixes=(restored,) if restored is not None else (),
    )


def _named(now: Program, was: Program) -> Iterator[Violation]:
    for entry in changed_settings(now, was):
        if entry.ratio is None or "warmup" in entry.words:
            continue
        if entry.name in _NAMES or rank_alias("updates", entry.name) is not None:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; the "
                "contract holds as many updates as the baseline makes.",
                severity="error" if entry.name not in {"steps", "iterations"} else "warning",
                place=entry.now.place,
                contract_place=entry.was.place,
            )


@remembered
def _exits(program: Program) -> list[Fragment]:
    """The conditions under which the update loop is left."""
    training = program.work.training
    if training is None or training.update is None:
        return []
    loop = training.update
    inside = pieces(
        program,
        ((loop.scope, loop.node),),
        _leaves,
        *(ast.Break, ast.Return, ast.Expr, ast.Raise),
    )
    return [
        Fragment(program, piece.scope, _condition(piece) or piece.node)
        for piece in inside
        if _breaks(piece, loop.node)
    ]


def _leaves(node: ast.AST) -> bool:
    if isinstance(node, ast.Break | ast.Return):
        return True
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="exit" | "_exit"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="exit" | "quit"))):
            return True
        case ast.Raise(exc=exc) if exc is not None:
            return "Stop" in unparse(exc)
        case _:
            return False


def _breaks(piece: Fragment, loop: ast.AST) -> bool:
    """Whether a `break` belongs to the loop itself; other exits always leave it."""
    for ancestor in piece.scope.source.ancestors(piece.node):
        if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        if isinstance(ancestor, ast.For | ast.While | ast.AsyncFor):
            return ancestor is loop or not isinstance(piece.node, ast.Break)
    return False


def _condition(piece: Fragment) -> ast.AST | None:
    for ancestor in piece.scope.source.ancestors(piece.node):
        if isinstance(ancestor, ast.If):
            return ancestor.test
        if isinstance(ancestor, ast.For | ast.While | ast.AsyncFor):
            return None
    return None


def _reason(leave: Fragment) -> str:
    is_test = isinstance(leave.node, ast.expr)
    return f"`if {leave.text[:60]}`" if is_test else f"`{leave.text[:60]}`"


def _is_on_progress(text: str) -> bool:
    words = ("loss", "smooth", "ema", "best", "patience", "time", "elapsed", "budget")
    return any(word in text.lower() for word in words) and "isfinite" not in text
