"""Lists that a loop fills: `batches.append(x)`, `batches += [x]`; what goes in and how often."""

import ast
from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.frames import Frame
from infrarsi.reading.project import Project
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import Many, Unknown, Value

_LOOPS = ast.For | ast.AsyncFor | ast.While


def additions(project: Project, scope: Scope, name: str) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What statements of a scope add to a list, each with the statement or call that does.

    An element stands for itself; for what adds several at once it is the whole list added.
    """
    for event in scope.events.get(name, []):
        if event.kind == "augment" and event.value is not None:
            match event.value:
                case ast.List(elts=[element]):
                    yield event.node, element
                case _:
                    yield event.node, event.value
    yield from project.additions.get((scope, name), ())


def grown_length(evaluator: Evaluator, name: str, frame: Frame) -> Value | None:
    """The length of a list that starts empty and is filled; None where nothing adds to it."""
    scope = next((f.scope for f in frame.around() if name in f.scope.events), None)
    added = list(additions(evaluator.project, scope, name)) if scope is not None else []
    if scope is None or not added:
        return None
    node, element = added[0]
    around = [a for a in scope.source.ancestors(node) if isinstance(a, _LOOPS | ast.If)]
    start = scope.events[name][0].value
    empty = evaluator.value(start, frame) if start is not None else None
    plain = len(added) == 1 and isinstance(empty, Many) and not empty.items
    several = isinstance(node, ast.AugAssign) and node.value is element
    match around:
        case [ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[count])), *_] if (
            plain and not several and not _extends(node)
        ):
            return evaluator.named(count, frame, "range")
        case _:
            return Unknown(f"how long `{name}` grows is not known")


def _extends(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "extend"
    )
