"""What one binding of a name makes it hold: an assignment, an import, a definition, a parameter.

Which bindings count where the name is read, and under which conditions, is the evaluator's part.
"""

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from infrarsi.reading import calls, commands, imports, objects
from infrarsi.reading.frames import Frame
from infrarsi.reading.operators import binary
from infrarsi.reading.scopes import Event, Function, parameters
from infrarsi.reading.values import (
    ClassValue,
    FunctionValue,
    Known,
    Origin,
    Unknown,
    Value,
    merge_origins,
    same_value,
)

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator


def bind(evaluator: "Evaluator", event: Event, frame: Frame, current: Value | None) -> Value:
    """What a name holds after one of its bindings; `current` is what it held before."""
    frame = frame if event.scope is None else evaluator.frame(event.scope)
    match event.kind:
        case "argument" if event.value is not None:
            value = evaluator.value(event.value, frame)
            scalar = value.value if isinstance(value, Known) else None
            return evaluator.originate(Origin("argument", f"--{event.name}", scalar))
        case "assign" if event.value is not None:
            if not event.path:
                return evaluator.named(event.value, frame, event.name)
            value = evaluator.value(event.value, frame)
            for index in event.path:
                value = evaluator.select(value, index)
            return value
        case "augment" if event.value is not None and event.operator is not None:
            return _augmented(evaluator, event, event.value, event.operator, frame, current)
        case "import" if isinstance(event.node, ast.Import | ast.ImportFrom):
            return imports.imported(evaluator, event.name, event.node, frame)
        case "define":
            return _defined(evaluator, event, frame)
        case "parameter" if isinstance(event.node, Function):
            return _parameter(evaluator, event.name, event.node, frame)
        case "loop":
            return Unknown(f"`{event.name}` changes in a loop")
        case "opaque" if isinstance(event.node, Function):
            return calls.surplus(evaluator, event.name, event.node, frame)
        case _:
            return Unknown(f"`{event.name}` is set in a way that is not followed")


def _augmented(
    evaluator: "Evaluator",
    event: Event,
    added: ast.expr,
    op: ast.operator,
    frame: Frame,
    current: Value | None,
) -> Value:
    if event.in_loop or current is None:
        return Unknown(f"`{event.name}` changes in a loop")
    value = binary(op, current, evaluator.value(added, frame))
    if isinstance(value, Known):
        place = frame.scope.source.place(event.node)
        return Known(value.value, merge_origins([current, value]), place)
    return value


def changed_later(
    evaluator: "Evaluator",
    events: Sequence[Event],
    before: Sequence[Event],
    frame: Frame,
    current: Value,
    at: ast.expr | None,
) -> Value:
    """The value, unless a later pass through the loop would find another number there."""
    later = [event for event in events if event not in before and event.in_loop]
    if at is None or not isinstance(current, Known) or not before or not later:
        return current
    loops = ast.For | ast.AsyncFor | ast.While
    around = {node for node in frame.scope.source.ancestors(at) if isinstance(node, loops)}
    for event in later:
        shared = any(node in around for node in frame.scope.source.ancestors(event.node))
        if shared and not same_value(current, bind(evaluator, event, frame, current)):
            return Unknown(f"`{event.name}` changes in a loop")
    return current


def _defined(evaluator: "Evaluator", event: Event, frame: Frame) -> Value:
    scope = evaluator.project.scopes.get(event.node)
    if scope is None:
        return Unknown(f"`{event.name}` is set in a way that is not followed")
    if isinstance(event.node, ast.ClassDef):
        return ClassValue(scope, frame)
    return FunctionValue(scope, frame)


def _parameter(evaluator: "Evaluator", name: str, function: Function, frame: Frame) -> Value:
    given = parameters(function)
    if objects.is_method(frame.scope) and given and given[0][0] == name:
        return objects.this_value(evaluator, frame)
    default = dict(given)[name]
    if frame.arguments is not None:
        argument = frame.arguments.get(name)
        if argument is not None:
            return evaluator.named(argument.expression, argument.frame, name)
        return _default(evaluator, name, default, frame)
    values: list[Value] = []
    for site in evaluator.call_sites(frame.scope):
        argument = calls.argument_of(evaluator, site, frame.scope, name)
        if argument is not None:
            values.append(evaluator.named(argument.expression, argument.frame, name))
        else:
            values.append(_default(evaluator, name, default, frame))
    if not values and frame.scope.name == "forward":
        return Unknown(f"`{name}` is given by calls of the module")
    if not values:
        return _default(evaluator, name, default, frame)
    if all(same_value(values[0], value) for value in values):
        return values[0]
    return Unknown(f"`{name}` is given different values by different calls")


def _default(evaluator: "Evaluator", name: str, default: ast.expr | None, frame: Frame) -> Value:
    started = commands.parameter_value(evaluator, frame.scope, name)
    if started is not None:
        return started
    if default is None:
        return Unknown(f"no call that gives `{name}` was found")
    return evaluator.named(default, frame.parent or frame, name)
