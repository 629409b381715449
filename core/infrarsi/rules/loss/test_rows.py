"""L222: validation rows never reach a backward pass.

Training on what is measured makes the measure worthless. What rows are drawn from is compared.

Mend it by drawing from the training split only.
"""

import ast
import re
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.flow import Fetch
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change

CODE = "L222"
_SURE = {"val", "validation", "test", "heldout"}
_LIKELY = {"valid", "dev", "eval", "holdout"}


def find(change: Change) -> Iterator[Violation]:
    """An error where training draws from what is named for validation, as it did not before."""
    if change.sides is None:
        return
    now, was = change.sides
    held: dict[str, set[str]] = {}
    for name, _, words, _ in _sources(was):
        held.setdefault(name, set()).update(words)
    for name, place, words, near in _sources(now):
        fresh = sorted(words - held.get(name, set()))
        if fresh and name in held:
            sure = any(word in _SURE and word in near for word in fresh)
            yield violation(
                CODE,
                f"Training draws from `{fresh[0]}` rows; the contract holds the training split.",
                severity="error" if sure else "warning",
                place=place,
            )
            return
    swapped = _swapped(now, was)
    if swapped is not None:
        text = "Training draws from another part of what is loaded; the contract holds the same."
        yield violation(CODE, text, severity="warning", place=swapped)


def _sources(program: Program) -> Iterator[tuple[str, Place, set[str], set[str]]]:
    """Each fetch and each function it enters, by name, with the split words in and near it.

    The last are those that stand in the fetch itself or in what its names are bound to; the
    former also those one name further away.
    """
    for fetch in program.work.flow.fetches:
        near = [fetch.value, *_bound(fetch, fetch.value)]
        far = [value for node in near for value in _bound(fetch, node)]
        words = [
            {word for node in nodes for word in _words(unparse(node))} for nodes in (near, far)
        ]
        yield "fetch", _place(fetch), words[0] | words[1], words[0]
    for scope in program.work.fetching.scopes:
        words_inside = _words(_code(scope.node))
        yield scope.name, scope.source.place(scope.node), words_inside, words_inside


def _code(node: ast.AST) -> str:
    """A function's statements without its docstring."""
    body = node.body if isinstance(node, ast.FunctionDef) else []
    return " ".join(
        unparse(statement)
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    )


def _place(fetch: Fetch) -> Place:
    return fetch.scope.source.place(fetch.value)


def _bound(fetch: Fetch, value: ast.expr) -> Iterator[ast.expr]:
    """What the names in an expression are bound to, where that is no part of a tuple."""
    for node in walk(value):
        if isinstance(node, ast.Name):
            for scope in fetch.scope.around():
                for event in scope.events.get(node.id, []):
                    if event.value is not None and not event.path:
                        yield event.value


def _words(text: str) -> set[str]:
    parts = {part for word in re.findall(r"[A-Za-z_]+", text) for part in word.lower().split("_")}
    return parts & (_SURE | _LIKELY)


def _swapped(now: Program, was: Program) -> Place | None:
    """The fetch whose name is bound to another part of the same loaded tuple."""
    held = dict(_parts(was))
    for fetch in now.work.flow.fetches:
        for name, part in _parts_of(fetch):
            if name in held and held[name][0] == part[0] and held[name][1] != part[1]:
                return _place(fetch)
    return None


def _parts(program: Program) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    for fetch in program.work.flow.fetches:
        yield from _parts_of(fetch)


def _parts_of(fetch: Fetch) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    for node in walk(fetch.value):
        if isinstance(node, ast.Name):
            for scope in fetch.scope.around():
                for event in scope.events.get(node.id, []):
                    if event.value is not None and event.path:
                        yield node.id, (unparse(event.value), event.path)
