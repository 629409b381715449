"""The methods of a program's modules, paired with those of the other side by their names."""

import ast
from collections.abc import Iterator

from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope


def changed_methods(now: Program, was: Program) -> Iterator[tuple[Scope, Scope]]:
    """(now, was) of the methods that say something else than they did."""
    held = {_key(scope): scope for scope in was.module_scopes()}
    for scope in now.module_scopes():
        before = held.get(_key(scope))
        if before is not None and _text(now, scope) != _text(was, before):
            yield scope, before


def new_methods(now: Program, was: Program) -> Iterator[Scope]:
    """Methods of modules that the other side has no method of that name for."""
    held = {_key(scope) for scope in was.module_scopes()}
    return (scope for scope in now.module_scopes() if _key(scope) not in held)


def body_text(program: Program, scope: Scope) -> str:
    """A method with its constants written out."""
    return _text(program, scope)


def _key(scope: Scope) -> tuple[str, str]:
    return (scope.parent.name if scope.parent is not None else "", scope.name)


def _text(program: Program, scope: Scope) -> str:
    node = scope.node
    body = node.body if isinstance(node, ast.FunctionDef) else [node]
    return "\n".join(
        program.spell(statement, scope)
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    )
