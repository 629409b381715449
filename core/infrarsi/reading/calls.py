"""Calls: entering functions of the workspace, parsed arguments, and library calls."""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading import libraries, mappings, objects
from infrarsi.reading.argument_files import configured_fields, expanded_words, nested_fields
from infrarsi.reading.comprehensions import quantified
from infrarsi.reading.externals import call_external
from infrarsi.reading.frames import Argument, Frame, bind_arguments
from infrarsi.reading.options import Option, convert, given_texts, given_value, is_namespace
from infrarsi.reading.parts import CallSite
from infrarsi.reading.scopes import Function, Scope, parameters
from infrarsi.reading.texts import text_method
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
            return mappings.made_mapping(evaluator, callee, node, frame) or Instance(
                callee, node, frame
            )
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
    given_back = _given_back(evaluator, function, inner)
    if given_back is not None:
        return given_back
    if function.scope.is_generator:
        return Generated(inner)
    if function.scope in evaluator.calling:
        evaluator.trace.never()
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
            bind_arguments(
                spread_call(evaluator, node, frame),
                definition,
                frame,
                is_method=function.this is not None,
            )
            if isinstance(definition, Function)
            else None
        )
        made = Frame(function.scope, function.closure, bound, function.this)
        evaluator.entered[key] = as_before(evaluator, key, made)
    return evaluator.entered[key]


def as_before(evaluator: "Evaluator", key: tuple[ast.AST, Frame, Scope], made: Frame) -> Frame:
    """The frame that was made for the same call of the same function in an earlier state."""
    call = key[0]
    if isinstance(call, ast.Call) and any(keyword.arg is None for keyword in call.keywords):
        return made

    def fits(frame: Frame) -> bool:
        return frame.parent is made.parent and frame.this is made.this

    of_base = evaluator.base.entered.get(key) if evaluator.base is not None else None
    if of_base is not None and fits(of_base):
        return of_base
    return evaluator.trace.again(
        key[1].scope.source, ("entered", evaluator.subject, key), fits, made
    )


def argument_of(
    evaluator: "Evaluator", site: CallSite, function: Scope, name: str
) -> Argument | None:
    """The argument a call site gives for a parameter; None where it leaves the default."""
    definition = function.node
    if not isinstance(definition, Function):
        return None
    frame = evaluator.frame(site.scope)
    call = spread_call(evaluator, site.call, frame)
    bound = bind_arguments(call, definition, frame, is_method=objects.is_method(function))
    return (bound or {}).get(name)


def spread_call(evaluator: "Evaluator", call: ast.Call, frame: Frame) -> ast.Call:
    """The call with each `**mapping` that is followed written out as named arguments."""
    if all(keyword.arg is not None for keyword in call.keywords):
        return call
    evaluator.trace.never()
    key = (call, frame)
    if key not in evaluator.spread:
        evaluator.spread[key] = call
        keywords = [k for keyword in call.keywords for k in _spread(evaluator, keyword, frame)]
        made = ast.Call(call.func, call.args, keywords)
        evaluator.spread[key] = ast.copy_location(made, call)
    return evaluator.spread[key]


def _spread(evaluator: "Evaluator", keyword: ast.keyword, frame: Frame) -> list[ast.keyword]:
    if keyword.arg is not None:
        return [keyword]
    record = mappings.as_record(evaluator, evaluator.value(keyword.value, frame))
    if not isinstance(record, Record):
        return [keyword]
    spread: list[ast.keyword] = []
    for name, value in record.fields.items():
        stands_for = ast.copy_location(ast.Name(name, ast.Load()), keyword.value)
        evaluator.preset(stands_for, frame, value)
        spread.append(ast.keyword(name, stands_for))
    return spread


def surplus(evaluator: "Evaluator", name: str, function: Function, frame: Frame) -> Value:
    """What `**kwargs` holds: the named arguments no parameter takes."""
    is_keywords = function.args.kwarg is not None and function.args.kwarg.arg == name
    arguments = frame.arguments
    if arguments is None and is_keywords:
        sites = evaluator.call_sites(frame.scope)
        if len(sites) == 1:
            outer = evaluator.frame(sites[0].scope)
            call = spread_call(evaluator, sites[0].call, outer)
            is_method = objects.is_method(frame.scope)
            arguments = bind_arguments(call, function, outer, is_method=is_method)
    if arguments is None or not is_keywords:
        return Unknown(f"`{name}` is set in a way that is not followed")
    taken = {parameter for parameter, _ in parameters(function)}
    return Record(
        {
            key: evaluator.named(argument.expression, argument.frame, key)
            for key, argument in arguments.items()
            if key not in taken
        }
    )


def _given_back(evaluator: "Evaluator", function: FunctionValue, inner: Frame) -> Value | None:
    """The argument of a function that only wraps mappings for access by attribute."""
    node = function.scope.node
    if not isinstance(node, ast.FunctionDef):
        return None
    parameter = mappings.gives_back(node)
    return None if parameter is None else evaluator.name(parameter, inner)


def arguments_record(
    evaluator: "Evaluator", parse: ast.Call | None = None, scope: Scope | None = None
) -> Record:
    """What `parse_args()`, called there, gives under this launch."""
    here = (scope, parse.lineno if parse is not None else 0)
    given = given_texts(evaluator.options, expanded_words(evaluator))
    configured = configured_fields(evaluator, given)
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
        elif option.dest in configured:
            fields[option.dest] = configured[option.dest]
        else:
            fields[option.dest] = _option_default(evaluator, option, kind_value, here)
    return nested_fields(fields)


def _option_default(
    evaluator: "Evaluator", option: Option, kind: Value | None, here: tuple[Scope | None, int]
) -> Value:
    frame = evaluator.frame(option.site.scope)
    set_later = _set_default(evaluator, option.dest, here)
    if set_later is not None:
        return set_later
    default = option.keywords.get("default")
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


def _set_default(evaluator: "Evaluator", dest: str, here: tuple[Scope | None, int]) -> Value | None:
    """What `parser.set_defaults(dest=...)` or `set_defaults(**config)` above says."""
    scope, line = here
    for site in evaluator.project.calls_by_name.get("set_defaults", []):
        if site.scope is scope and site.call.lineno > line:
            continue
        frame = evaluator.frame(site.scope)
        for keyword in site.call.keywords:
            if keyword.arg == dest:
                return evaluator.named(keyword.value, frame, dest)
            record = None if keyword.arg else evaluator.value(keyword.value, frame)
            if isinstance(record, Record) and dest in record.fields:
                return record.fields[dest]
    return None


def _library_call(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value:
    from infrarsi.reading.trainers.members import library_function

    if name in {"builtins.all", "builtins.any"}:
        truth = quantified(evaluator, name.rpartition(".")[2], node, frame)
        if truth is not None:
            return truth
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    found = libraries.library_value(evaluator, name, node, frame)
    if found is not None:
        return found
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
    return library_function(name, node, frame) or Made(name, node, frame)


def _bound_call(
    evaluator: "Evaluator", base: Value, name: str, node: ast.Call, frame: Frame
) -> Value:
    from infrarsi.reading.trainers.members import library_method

    found = libraries.method_value(evaluator, base, name, node, frame)
    if found is not None:
        return found
    match base:
        case Known():
            plain = text_method(base, name, [evaluator.value(a, frame) for a in node.args])
            return plain or Made(name, node, frame)
        case Made(callee=callee) if is_namespace(callee) and name == "parse_args":
            return arguments_record(evaluator, node, frame.scope)
        case Made(callee=callee) if is_namespace(callee) and name == "parse_known_args":
            return Many(
                (arguments_record(evaluator, node, frame.scope), Unknown("the remaining arguments"))
            )
        case Made() | Instance() if name in _SAME_OBJECT:
            return base
        case Record(fields=fields) if name == "get" and node.args:
            key = evaluator.value(node.args[0], frame)
            found = fields.get(str(key.value)) if isinstance(key, Known) else None
            rest = node.args[1:2]
            return found or (evaluator.value(rest[0], frame) if rest else Known(None))
        case Made(callee=callee):
            known = library_method(evaluator, base, name, node, frame)
            return known or Made(f"{callee}.{name}", node, frame)
        case _:
            return Made(name, node, frame)
