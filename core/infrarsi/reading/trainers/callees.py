"""Calls of a library's class or function, through imports, aliases and classes built on it."""

import ast
from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.frames import Frame
from infrarsi.reading.project import CallSite
from infrarsi.reading.values import ClassValue, Symbol, Value

_MAX_BASES = 4


def calls_of(
    evaluator: Evaluator, roots: set[str], names: set[str]
) -> Iterator[tuple[CallSite, Value]]:
    """Calls of what a library names so, or of a class of the workspace derived from it."""
    derived = {
        scope.name
        for scope in evaluator.project.scopes.values()
        if isinstance(scope.node, ast.ClassDef) and scope.node.bases
    }
    for name in sorted(names | derived):
        for site in evaluator.project.calls_by_name.get(name, []):
            callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
            if is_of(evaluator, callee, roots, names):
                yield site, callee


def is_of(
    evaluator: Evaluator, callee: Value, roots: set[str], names: set[str], hops: int = 0
) -> bool:
    """Whether a callee is the library's, or a class of the workspace that is built on it."""
    if isinstance(callee, Symbol):
        root, last = callee.name.partition(".")[0], callee.name.rpartition(".")[2]
        return root in roots and last in names
    if not isinstance(callee, ClassValue) or hops > _MAX_BASES:
        return False
    node = callee.scope.node
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    frame: Frame = callee.closure
    return any(
        is_of(evaluator, evaluator.value(base, frame), roots, names, hops + 1) for base in bases
    )
