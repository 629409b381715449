"""The methods of a program's modules, paired with those of the other side by their names."""

import ast
from collections.abc import Iterator

from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope
from infrarsi.rules.remembered import remembered

Key = tuple[str, str]


def changed_methods(now: Program, was: Program) -> Iterator[tuple[Scope, Scope]]:
    """(now, was) of the methods that say something else than they did."""
    held = method_texts(was)
    for key, (scope, text) in method_texts(now).items():
        if key in held and text != held[key][1]:
            yield scope, held[key][0]


@remembered
def method_texts(program: Program) -> dict[Key, tuple[Scope, str]]:
    """Each method by class and name, with its statements spelled without docstring."""
    return dict(program.by_file(_texts_in))


def _texts_in(program: Program, module: Scope) -> Iterator[tuple[Key, tuple[Scope, str]]]:
    for scope in program.module_scopes_of(module):
        owner = scope.parent.name if scope.parent is not None else ""
        yield (owner, scope.name), (scope, body_text(program, scope))


@remembered
def body_text(program: Program, scope: Scope) -> str:
    """A method with its constants written out."""
    node = scope.node
    body = node.body if isinstance(node, ast.FunctionDef) else [node]
    return "\n".join(
        program.spell(statement, scope)
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    )
