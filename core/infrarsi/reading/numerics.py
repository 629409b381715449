"""Facts on numbers' formats and the objective: autocast, parameter casts, the loss call."""

import ast
from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.fetching import argument_named
from infrarsi.reading.flow import calls_loss, is_model
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Function, dotted, guards_around
from infrarsi.reading.trainers.checkpoints import model_format
from infrarsi.reading.training import LoopNode
from infrarsi.reading.values import (
    ClassValue,
    FunctionValue,
    Instance,
    Known,
    Made,
    Symbol,
    Unknown,
    Value,
)
from infrarsi.reading.workload import StepWork

_FORMATS = {
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.half": "fp16",
    "torch.float32": "fp32",
    "torch.float": "fp32",
}
_CASTS = {"bfloat16": "bf16", "half": "fp16"}


def parameters_fact(evaluator: Evaluator) -> tuple[Value, CallSite | None]:
    """The format parameters are cast to as a whole, and the call that does it.

    Unknown where a cast stands under a condition that cannot be decided.
    """
    for site in _casts(evaluator):
        value = _cast_to(evaluator, site)
        if value is None and evaluator.project.half_typed and _may_cast(evaluator, site):
            return Unknown("what is cast is not found while lines are half typed"), None
        if value is None or value == "fp32":
            continue
        holds = evaluator.hold(guards_around(site.scope, site.call), evaluator.frame(site.scope))
        if holds is True:
            return Known(value, (), site.scope.source.place(site.call)), site
        if holds is None:
            return Unknown(f"a cast to {value} depends on a condition that is not known"), site
    return model_format(evaluator) or (Known("fp32"), None)


def precision_fact(evaluator: Evaluator, work: StepWork, parameters: Value) -> Value:
    """The format of the forward pass: that of the autocast around it, else the parameters'."""
    unclear: Value | None = None
    for item, site in _contexts(evaluator, work):
        value = evaluator.value(item, evaluator.frame(site.scope))
        if isinstance(value, Made) and value.callee.endswith("autocast"):
            found = _autocast_format(evaluator, value)
            if not isinstance(found, Known) or found.value != "fp32":
                return found
        elif not isinstance(value, Made) and _mentions_autocast(evaluator):
            unclear = Unknown("whether autocast is on depends on a condition that is not known")
    hidden = work.library is None or not work.library.owns_loop
    if hidden and not work.flow.forwards and unclear is None:
        unclear = Unknown("no forward pass was found")
    return sharded_precision(evaluator) or unclear or parameters


def sharded_precision(evaluator: Evaluator) -> Value | None:
    """The format FSDP computes in by its mixed-precision policy; None where none is made."""
    for constructor in ("MixedPrecisionPolicy", "MixedPrecision"):
        for site in evaluator.project.calls_by_name.get(constructor, []):
            given = argument_named(site.call, "param_dtype", 0)
            frame = evaluator.frame(site.scope)
            holds = evaluator.hold(guards_around(site.scope, site.call), frame)
            if given is None or holds is False:
                continue
            value = evaluator.value(given, frame)
            if isinstance(value, Known) and value.value is None:
                continue
            if holds is None or not isinstance(value, Symbol) or value.name not in _FORMATS:
                return Unknown(f"the format of {constructor} is not known")
            return Known(_FORMATS[value.name], (), site.scope.source.place(site.call))
    return None


def loss_fact(evaluator: Evaluator, work: StepWork) -> Value:
    """The function that computes the loss, by its last name."""
    sites = [*work.flow.losses, *_losses_in_model(evaluator, work)]
    for site in sites:
        callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
        name = callee.name if isinstance(callee, Symbol) else ""
        name = callee.callee if isinstance(callee, Made) else name
        if name:
            place = site.scope.source.place(site.call)
            return Known(name.rpartition(".")[2], (), place)
    if evaluator.project.half_typed:
        return Unknown("the loss is not found while lines are half typed")
    for site in sites:
        callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
        if isinstance(callee, FunctionValue):
            return Unknown(f"it is computed by the job's own `{site.name}`")
        return Known(site.name, (), site.scope.source.place(site.call))
    operand = work.flow.operand
    if operand is not None and work.flow.forwards:
        site = work.flow.forwards[0]
        return Known(f"{site.name}(...)", (), site.scope.source.place(site.call))
    return Unknown("no call that computes a loss was found on the way to backward")


def _casts(evaluator: Evaluator) -> Iterator[CallSite]:
    for name in ("bfloat16", "half", "to", "type", "set_default_dtype"):
        yield from evaluator.project.calls_by_name.get(name, [])


def _cast_to(evaluator: Evaluator, site: CallSite) -> str | None:
    frame = evaluator.frame(site.scope)
    if site.name == "set_default_dtype":
        return _format_in(evaluator, site)
    if not isinstance(site.call.func, ast.Attribute) or _is_loop_local(site):
        return None
    receiver = site.call.func.value
    name = (dotted(receiver) or "").rpartition(".")[2].lower()
    if not is_model(evaluator, evaluator.value(receiver, frame)) and "model" not in name:
        return None
    return _CASTS.get(site.name) or _format_in(evaluator, site)


def _may_cast(evaluator: Evaluator, site: CallSite) -> bool:
    """Whether a call casts to 16 bits something that is not known."""
    func = site.call.func
    if not isinstance(func, ast.Attribute) or _is_loop_local(site):
        return False
    held = evaluator.value(func.value, evaluator.frame(site.scope))
    form = _CASTS.get(site.name) or _format_in(evaluator, site)
    return isinstance(held, Unknown) and form not in {None, "fp32"}


def _is_loop_local(site: CallSite) -> bool:
    """Casts within a loop over parts are still casts; within functions called forward not."""
    node = site.scope.node
    in_loop = any(isinstance(a, LoopNode) for a in site.scope.source.ancestors(site.call))
    return isinstance(node, Function) and site.scope.name == "forward" and not in_loop


def _format_in(evaluator: Evaluator, site: CallSite) -> str | None:
    frame = evaluator.frame(site.scope)
    expressions = [*site.call.args, *(k.value for k in site.call.keywords if k.arg == "dtype")]
    for expression in expressions:
        value = evaluator.value(expression, frame)
        if isinstance(value, Symbol) and value.name in _FORMATS:
            return _FORMATS[value.name]
    return None


def _contexts(evaluator: Evaluator, work: StepWork) -> Iterator[tuple[ast.expr, CallSite]]:
    """What the forward passes stand in: `with` items around them and around their callers."""
    for site in work.flow.forwards:
        yield from _items_around(site)
        if isinstance(site.scope.node, Function):
            for caller in evaluator.call_sites(site.scope):
                yield from _items_around(caller)


def _items_around(site: CallSite) -> Iterator[tuple[ast.expr, CallSite]]:
    for ancestor in site.scope.source.ancestors(site.call):
        if isinstance(ancestor, ast.With | ast.AsyncWith):
            for item in ancestor.items:
                yield item.context_expr, site


def _autocast_format(evaluator: Evaluator, made: Made) -> Value:
    place = made.frame.scope.source.place(made.call)
    enabled = argument_named(made.call, "enabled", None)
    if enabled is not None:
        on = evaluator.value(enabled, made.frame)
        if isinstance(on, Known) and not on.value:
            return Known("fp32")
        if not isinstance(on, Known):
            return Unknown("whether autocast is on is not known")
    dtype = argument_named(made.call, "dtype", 0 if ".amp." in made.callee else 1)
    if dtype is None:
        device = argument_named(made.call, "device_type", 0)
        on_cpu = device is not None and _is_cpu(evaluator.value(device, made.frame))
        return Known("bf16" if on_cpu else "fp16", (), place)
    value = evaluator.value(dtype, made.frame)
    if isinstance(value, Symbol) and value.name in _FORMATS:
        return Known(_FORMATS[value.name], (), place)
    return Unknown("the format of autocast depends on a condition that is not known")


def _is_cpu(value: Value) -> bool:
    return isinstance(value, Known) and value.value == "cpu"


def _mentions_autocast(evaluator: Evaluator) -> bool:
    return "autocast" in evaluator.project.calls_by_name


def _losses_in_model(evaluator: Evaluator, work: StepWork) -> Iterator[CallSite]:
    """Loss calls in the forward method of the model that is called."""
    for forward in work.flow.forwards:
        value = evaluator.value(forward.call.func, evaluator.frame(forward.scope))
        while isinstance(value, Made) and value.call.args:
            value = evaluator.value(value.call.args[0], value.frame)
        scope = value.of.scope if isinstance(value, Instance) else None
        scope = value.scope if isinstance(value, ClassValue) else scope
        for site in evaluator.project.calls:
            in_model = any(around is scope for around in site.scope.around())
            if scope is not None and in_model and calls_loss(evaluator, site):
                yield site
