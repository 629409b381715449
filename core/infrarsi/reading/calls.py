"""Calls: entering functions of the workspace, parsed arguments, and library calls."""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading import objects
from infrarsi.reading.comprehensions import quantified
from infrarsi.reading.externals import call_external
from infrarsi.reading.frames import Argument, Frame, bind_arguments
from infrarsi.reading.options import Option, convert, given_texts, given_value, is_namespace
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.values import (
    Bound,
    ClassValue,
    FunctionValue,
    Generated,
    Instance,
    Known,
    Made,
    Many,
    Origin,
    Record,
    Symbol,
    Unknown,
    Value,
    same_value,
)

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_SAME_OBJECT = {
    "to",
    "cuda",
    "cpu",
    "train",
    "eval",
    "bfloat16",
    "half",
    "float",
    "double",
    "requires_grad_",
    "share_memory",
    "apply",
    "parse",
}


def call_value(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> Value:
    """What a call gives."""
    callee = evaluator.value(node.func, frame)
    match callee:
        case FunctionValue():
            return enter(evaluator, callee, node, frame)
        case ClassValue():
            return Instance(callee, node, frame)
        case Symbol(name=name):
            return _library_call(evaluator, name, node, frame)
        case Bound(base=base, attribute=name):
            return _bound_call(evaluator, base, name, node, frame)
        case Unknown():
            return callee
        case _:
            return Made("", node, frame)


def enter(evaluator: "Evaluator", function: FunctionValue, node: ast.Call, frame: Frame) -> Value:
    """What a function of the workspace returns for this call."""
    inner = entered_frame(evaluator, function, node, frame)
    if function.scope.is_generator:
        return Generated(inner)
    if function.scope in evaluator.calling:
        return Unknown(f"`{function.scope.name}` calls itself")
    evaluator.calling.append(function.scope)
    try:
        return returned(evaluator, inner)
    finally:
        evaluator.calling.pop()


def returned(evaluator: "Evaluator", frame: Frame) -> Value:
    """What the function's return statements give: the first one that is surely reached."""
    candidates: list[Value] = []
    for event in frame.scope.returns:
        holds = evaluator.hold(event.guards, frame)
        if holds is False:
            continue
        name = frame.scope.name
        candidates.append(
            Known(None) if event.value is None else evaluator.named(event.value, frame, name)
        )
        if holds is True:
            break
    else:
        candidates.append(Known(None))
    if all(same_value(candidates[0], other) for other in candidates):
        return candidates[0]
    return Unknown(f"what `{frame.scope.name}` returns depends on a condition not known")


def entered_frame(
    evaluator: "Evaluator", function: FunctionValue, node: ast.Call, frame: Frame
) -> Frame:
    """The function's frame for this call; the same object for the same call."""
    key = (node, frame, function.scope)
    if key not in evaluator.entered:
        definition = function.scope.node
        bound = (
            bind_arguments(node, definition, frame, is_method=function.this is not None)
            if isinstance(definition, Function)
            else None
        )
        evaluator.entered[key] = Frame(function.scope, function.closure, bound, function.this)
    return evaluator.entered[key]


def argument_of(
    evaluator: "Evaluator", site: CallSite, function: Scope, name: str
) -> Argument | None:
    """The argument a call site gives for a parameter; None where it leaves the default."""
    definition = function.node
    if not isinstance(definition, Function):
        return None
    frame = evaluator.frame(site.scope)
    bound = bind_arguments(site.call, definition, frame, is_method=objects.is_method(function))
    return (bound or {}).get(name)


def unpacks(call: ast.Call) -> bool:
    """Whether `*` or `**` hides arguments of a call."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def arguments_record(evaluator: "Evaluator") -> Record:
    """What `parse_args()` gives under this launch."""
    given = given_texts(evaluator.options, evaluator.launch.args)
    fields: dict[str, Value] = {}
    for option in evaluator.options:
        frame = evaluator.frame(option.site.scope)
        kind = option.keywords.get("type")
        kind_value = evaluator.value(kind, frame) if kind is not None else None
        if option in given:
            value = given_value(option, given[option], kind_value)
            if isinstance(value, Known) and value.origins:
                given_by = evaluator.originate(value.origins[0])
                value = Known(given_by.value, given_by.origins, value.place)
            fields[option.dest] = value
        else:
            fields[option.dest] = _option_default(evaluator, option, kind_value, frame)
    return Record(fields)


def _option_default(
    evaluator: "Evaluator", option: Option, kind: Value | None, frame: Frame
) -> Value:
    default = option.keywords.get("default") or _set_default(evaluator, option.dest)
    if default is None:
        return Known(option.action == "store_false" if "store_" in option.action else None)
    value = evaluator.named(default, frame, option.flag)
    origin = value.direct() if isinstance(value, Known) else None
    if not isinstance(value, Known) or origin is None:
        return value
    if isinstance(value.value, str):
        converted = convert(value.value, kind)
        return converted if isinstance(converted, Unknown) else _converted(value, converted)
    if origin.place is not None and origin.place.line >= option.site.call.lineno:
        carried = Origin("argument_default", option.flag, origin.value, origin.file, origin.place)
        return evaluator.originate(carried)
    return value


def _converted(value: Known, converted: str | float) -> Known:
    return Known(converted, value.origins, value.place)


def _set_default(evaluator: "Evaluator", dest: str) -> ast.expr | None:
    for site in evaluator.project.calls_by_name.get("set_defaults", []):
        for keyword in site.call.keywords:
            if keyword.arg == dest:
                return keyword.value
    return None


def _library_call(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value:
    if name in {"builtins.all", "builtins.any"}:
        truth = quantified(evaluator, name.rpartition(".")[2], node, frame)
        if truth is not None:
            return truth
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if plain and not objects.is_wrapper(name):
        args = tuple(evaluator.value(argument, frame) for argument in node.args)
        keywords = {
            keyword.arg: evaluator.named(keyword.value, frame, keyword.arg)
            for keyword in node.keywords
            if keyword.arg is not None
        }
        known = call_external(name, evaluator.launch, args, keywords)
        if known is not None:
            return known
    return Made(name, node, frame)


def _bound_call(
    evaluator: "Evaluator", base: Value, name: str, node: ast.Call, frame: Frame
) -> Value:
    match base:
        case Made(callee=callee) if is_namespace(callee) and name == "parse_args":
            return arguments_record(evaluator)
        case Made(callee=callee) if is_namespace(callee) and name == "parse_known_args":
            return Many((arguments_record(evaluator), Unknown("the remaining arguments")))
        case Made() | Instance() if name in _SAME_OBJECT:
            return base
        case Record(fields=fields) if name == "get" and node.args:
            key = evaluator.value(node.args[0], frame)
            found = fields.get(str(key.value)) if isinstance(key, Known) else None
            rest = node.args[1:2]
            return found or (evaluator.value(rest[0], frame) if rest else Known(None))
        case Made(callee=callee):
            return Made(f"{callee}.{name}", node, frame)
        case _:
            return Made(name, node, frame)
