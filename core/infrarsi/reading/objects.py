"""Attributes and objects: what `x.y` holds, and what objects of the workspace were given."""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading import calls, imports, mappings, paths
from infrarsi.reading.frames import Frame
from infrarsi.reading.heirs import as_base, derives, makers
from infrarsi.reading.scopes import Event, Function, Scope, dotted
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import (
    Bound,
    ClassValue,
    FunctionValue,
    Instance,
    Known,
    Made,
    Many,
    Module,
    Record,
    Symbol,
    Unknown,
    Value,
    same_value,
)

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

WRAPPERS = {
    "DistributedDataParallel",
    "DataParallel",
    "FullyShardedDataParallel",
    "compile",
    "fully_shard",
    "checkpoint_wrapper",
}
"""Calls that give back the module they are given, seen from outside."""


def attribute_value(evaluator: "Evaluator", node: ast.Attribute, frame: Frame) -> Value:
    """What `x.y` holds: an assignment to it in plain sight first, then what `x` is."""
    path = dotted(node)
    written = _written(evaluator, path, frame, node) if path else None
    value = written or attribute(evaluator, evaluator.value(node.value, frame), node.attr)
    return mappings.changed(evaluator, value, path or "", frame, node, (0, 0))


def attribute(evaluator: "Evaluator", base: Value, name: str) -> Value:
    """The attribute of a value."""
    from infrarsi.reading.trainers.members import library_attribute

    match base:
        case Symbol(name="sys") if name == "argv":
            launch = evaluator.launch
            return Many((Known(launch.script), *(Known(word) for word in launch.args)))
        case Symbol(name=module):
            return Symbol(f"{module}.{name}")
        case Module(file=file):
            return imports.module_member(evaluator, file, name)
        case Record(fields=fields):
            return fields.get(name) or Bound(base, name)
        case Instance():
            return member(evaluator, base, name)
        case ClassValue():
            return member(evaluator, Instance(base), name)
        case Made(callee=callee, call=call, frame=frame) if is_wrapper(callee) and call.args:
            wrapped = evaluator.value(call.args[0], frame)
            inside = name in {"module", "_orig_mod"}
            return wrapped if inside else attribute(evaluator, wrapped, name)
        case Made():
            return library_attribute(evaluator, base, name) or Bound(base, name)
        case Unknown():
            return base
        case Known():
            return paths.path_attribute(base, name) or Bound(base, name)
        case _:
            return Bound(base, name)


def is_wrapper(callee: str) -> bool:
    """Whether the library call gives its module back."""
    return callee.rpartition(".")[2] in WRAPPERS


def is_method(scope: Scope) -> bool:
    """Whether the function is written in a class and takes the object."""
    node = scope.node
    if scope.parent is None or not isinstance(scope.parent.node, ast.ClassDef):
        return False
    decorators = node.decorator_list if not isinstance(node, ast.Lambda | ast.Module) else []
    return not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)


def _is_classmethod(scope: Scope) -> bool:
    node = scope.node
    decorators = [] if isinstance(node, ast.Lambda | ast.Module) else node.decorator_list
    return any(isinstance(d, ast.Name) and d.id == "classmethod" for d in decorators)


def this_value(evaluator: "Evaluator", frame: Frame) -> Value:
    """What `self` is: the object of the call, or the only one that is ever made."""
    owner = frame.scope.parent
    if owner is not None and _is_classmethod(frame.scope):
        return ClassValue(owner, evaluator.frame(owner.parent or owner))
    if frame.this is not None:
        return frame.this
    if owner is None:
        return Unknown("`self` stands outside of a class")
    closure = evaluator.frame(owner.parent) if owner.parent else evaluator.frame(owner)
    of = ClassValue(owner, closure)
    made = makers(evaluator, owner)
    if len(made) == 1:
        heir, site = made[0]
        of = ClassValue(heir, evaluator.frame(heir.parent or heir))
        return Instance(of, site.call, evaluator.frame(site.scope))
    return Instance(of)


def _written(evaluator: "Evaluator", path: str, frame: Frame, at: ast.expr) -> Value | None:
    """What an assignment to the dotted path says, here or where the object was passed from."""
    root, _, rest = path.partition(".")
    for around in frame.around():
        position = at if around is frame else None
        events = around.scope.events.get(path, [])
        if position is not None:
            used = (position.lineno, position.col_offset)
            events = [event for event in events if event.end <= used]
        if events:
            return _with_initial(evaluator, events, around, root, rest)
        if root in around.scope.events:
            return _written_by_caller(evaluator, root, rest, around)
    return None


def _written_by_caller(evaluator: "Evaluator", root: str, rest: str, frame: Frame) -> Value | None:
    events = frame.scope.events[root]
    if len(events) != 1 or events[0].kind != "parameter":
        return None
    if frame.arguments is not None:
        argument = frame.arguments.get(root)
    else:
        sites = evaluator.call_sites(frame.scope)
        only = sites[0] if len(sites) == 1 else None
        argument = calls.argument_of(evaluator, only, frame.scope, root) if only else None
    if argument is None:
        return None
    outer = dotted(argument.expression)
    if outer is None or (outer == root and argument.frame is frame):
        return None
    return _written(evaluator, f"{outer}.{rest}", argument.frame, argument.expression)


def _with_initial(
    evaluator: "Evaluator", events: list[Event], frame: Frame, root: str, rest: str
) -> Value:
    needs_initial = any(event.kind == "augment" or event.guards for event in events)
    if not needs_initial or root == "self":
        return evaluator.fold(events, frame, None)
    value = evaluator.name(root, frame)
    for name in rest.split("."):
        value = attribute(evaluator, value, name)
    return evaluator.fold(events, frame, None, initial=value)


def member(evaluator: "Evaluator", instance: Instance, name: str) -> Value:
    """What an object holds under a name, as its class and its constructor call tell."""
    scope = instance.of.scope
    if name in instance.overlay:
        return instance.overlay[name]
    given = _field(evaluator, instance, name)
    if given is not None:
        return given
    for method in _methods(scope):
        events = method.events.get(f"self.{name}")
        put = mappings.put_by_constructor(evaluator, instance, method, name)
        if put is not None:
            return put
        if events:
            return evaluator.fold(events, method_frame(evaluator, instance, method), None)
    if name in scope.events:
        held = evaluator.fold(scope.events[name], Frame(scope, instance.of.closure), None)
        return _asmember(evaluator, instance, _field_default(evaluator, held))
    return _inherited(evaluator, instance, name)


def _asmember(evaluator: "Evaluator", instance: Instance, held: Value) -> Value:
    if not isinstance(held, FunctionValue) or not is_method(held.scope):
        return held
    node = held.scope.node
    decorators = [] if isinstance(node, ast.Lambda | ast.Module) else node.decorator_list
    bound = FunctionValue(held.scope, instance.of.closure, instance)
    if any(unparse(decorator).endswith("property") for decorator in decorators):
        return calls.returned(evaluator, Frame(held.scope, instance.of.closure, {}, instance))
    return bound


def _field_default(evaluator: "Evaluator", held: Value) -> Value:
    """What `dataclasses.field(default=...)` or `field(default_factory=...)` gives."""
    if not isinstance(held, Made) or held.callee not in {"dataclasses.field", "pydantic.Field"}:
        return held
    for keyword in held.call.keywords:
        if keyword.arg == "default":
            return evaluator.named(keyword.value, held.frame, keyword.arg)
        if keyword.arg == "default_factory":
            factory = evaluator.value(keyword.value, held.frame)
            if isinstance(factory, ClassValue):
                return Instance(factory)
            if isinstance(factory, FunctionValue):
                return calls.returned(evaluator, Frame(factory.scope, factory.closure, {}))
    return held


def _inherited(evaluator: "Evaluator", instance: Instance, name: str) -> Value:
    node = instance.of.scope.node
    for base in node.bases if isinstance(node, ast.ClassDef) else []:
        value = evaluator.value(base, instance.of.closure)
        if isinstance(value, ClassValue) and derives(evaluator, instance.of.scope, value.scope):
            found = member(evaluator, as_base(evaluator, instance, value), name)
            if isinstance(found, FunctionValue) and found.this is not None:
                return FunctionValue(found.scope, found.closure, instance)
            if not isinstance(found, Bound):
                return found
    return _set_outside(evaluator, instance, name) or Bound(instance, name)


def _set_outside(evaluator: "Evaluator", instance: Instance, name: str) -> Value | None:
    """What functions that hold the object assign to it: first the one that makes it."""
    writes = [
        (scope, path)
        for scope, path in evaluator.project.attribute_writes.get(name, [])
        if not path.startswith("self.") and instance.call is not None
    ]
    holders = [(s, path) for s, path in writes if _holds(evaluator, s, path, instance)]
    if len(holders) > 2:
        return Unknown(f"`{name}` is set in several places")
    holders.sort(
        key=lambda held: (held[1].count("."), not _returns(held[0], held[1].partition(".")[0]))
    )
    value: Value | None = None
    for scope, path in holders:
        value = evaluator.fold(scope.events[path], evaluator.frame(scope), None, initial=value)
    return value


def _holds(evaluator: "Evaluator", scope: Scope, path: str, instance: Instance) -> bool:
    """Whether what stands before the last dot of a written path is the object."""
    root, *between = path.split(".")[:-1]
    if (scope, path) in evaluator.holding:
        evaluator.trace.never()
        return False
    evaluator.holding.add((scope, path))
    try:
        value = evaluator.name(root, evaluator.frame(scope))
        for name in between:
            value = attribute(evaluator, value, name)
        return same_value(value, instance)
    finally:
        evaluator.holding.discard((scope, path))


def _returns(scope: Scope, name: str) -> bool:
    return any(
        isinstance(event.value, ast.Name) and event.value.id == name for event in scope.returns
    )


def _field(evaluator: "Evaluator", instance: Instance, name: str) -> Value | None:
    """A field given to the constructor of a class that writes none itself (a dataclass)."""
    scope, call, frame = instance.of.scope, instance.call, instance.frame
    if "__init__" in scope.events or call is None or frame is None:
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return evaluator.named(keyword.value, frame, name)
    for keyword in call.keywords:
        if keyword.arg is None:
            unpacked = evaluator.value(keyword.value, frame)
            if not isinstance(unpacked, Record):
                return Unknown(f"`{name}` may be given by what is unpacked into its class")
            if name in unpacked.fields:
                return unpacked.fields[name]
    fields = [
        field
        for field, events in scope.events.items()
        if any(isinstance(event.node, ast.AnnAssign) for event in events)
    ]
    index = fields.index(name) if name in fields else len(call.args)
    if index < len(call.args) and not isinstance(call.args[index], ast.Starred):
        return evaluator.named(call.args[index], frame, name)
    return None


def _methods(scope: Scope) -> list[Scope]:
    """The class's methods, the constructor first."""
    methods = [inner for inner in scope.inner.values() if isinstance(inner.node, Function)]
    return sorted(methods, key=lambda method: method.name != "__init__")


def method_frame(evaluator: "Evaluator", instance: Instance, method: Scope) -> Frame:
    """A method's frame for an object; the constructor's with the call that made the object."""
    bound = FunctionValue(method, instance.of.closure, instance)
    if method.name == "__init__" and instance.call is not None and instance.frame is not None:
        return calls.entered_frame(evaluator, bound, instance.call, instance.frame)
    return evaluator.frame(method)
