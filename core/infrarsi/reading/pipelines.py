"""Where a dataset comes from: the calls that made it, back through names, maps and look-ups."""

import ast
from collections.abc import Iterator

from infrarsi.reading.calls import argument_of
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.flow import Fetch
from infrarsi.reading.scopes import Scope, dotted
from infrarsi.reading.values import FunctionValue

_MAX_HOPS = 16


def dataset_calls(
    evaluator: Evaluator, expression: ast.expr, scope: Scope, hops: int = 0
) -> Iterator[Fetch]:
    """The calls a dataset went through, the last one first: `load().map(f)["train"]`."""
    if hops > _MAX_HOPS:
        return
    match expression:
        case ast.Name() | ast.Attribute():
            for bound, where in _bindings(evaluator, expression, scope):
                yield from dataset_calls(evaluator, bound, where, hops + 1)
        case ast.Subscript(value=base) | ast.Starred(value=base):
            yield from dataset_calls(evaluator, base, scope, hops + 1)
        case ast.Call(func=func):
            yield Fetch(expression, scope, expression)
            callee = evaluator.value(func, evaluator.frame(scope))
            if isinstance(callee, FunctionValue):
                for event in callee.scope.returns:
                    if event.value is not None:
                        yield from dataset_calls(evaluator, event.value, callee.scope, hops + 1)
            elif isinstance(func, ast.Attribute):
                yield from dataset_calls(evaluator, func.value, scope, hops + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield from dataset_calls(evaluator, body, scope, hops + 1)
            yield from dataset_calls(evaluator, orelse, scope, hops + 1)
        case _:
            pass


def _bindings(
    evaluator: Evaluator, node: ast.Name | ast.Attribute, scope: Scope
) -> Iterator[tuple[ast.expr, Scope]]:
    """What a name is bound to where it is read: its last sure binding and unsure ones after it."""
    path = dotted(node)
    if path is None:
        return
    for around in scope.around():
        events = around.events.get(path, [])
        used = (node.lineno, node.col_offset) if around is scope else None
        for event in [e for e in events if used is None or e.end <= used][::-1]:
            if event.kind == "parameter":
                for site in evaluator.call_sites(around):
                    argument = argument_of(evaluator, site, around, path)
                    if argument is not None:
                        yield argument.expression, argument.frame.scope
            elif event.value is not None:
                yield event.value, around
            if not event.guards:
                break
        if events:
            return
