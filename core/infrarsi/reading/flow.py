"""From the backward call back to where its numbers come from: loss, forward, fetched rows."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from infrarsi.reading.calls import argument_of
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.growth import additions
from infrarsi.reading.objects import is_wrapper
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Event, Scope, dotted
from infrarsi.reading.training import Training, is_module_class
from infrarsi.reading.values import FunctionValue, Made, Value
from infrarsi.reading.walking import walk

_MODEL_NAMES = {"net", "network", "gpt", "lm", "llm", "engine", "transformer", "ddp"}
_MAX_VISITED = 400


@dataclass(frozen=True, eq=False)
class Fetch:
    """Where model inputs come from: the expression, its scope, and the lines it stands on."""

    value: ast.expr
    scope: Scope
    node: ast.AST


@dataclass(eq=False)
class Flow:
    """What was found on the way back from the backward call."""

    forwards: list[CallSite] = field(default_factory=list[CallSite])
    losses: list[CallSite] = field(default_factory=list[CallSite])
    fetches: list[Fetch] = field(default_factory=list[Fetch])
    operand: ast.expr | None = None


def trace_flow(evaluator: Evaluator, training: Training) -> Flow:
    """Follow the backward call's operand through the step."""
    tracer = _Tracer(evaluator, training)
    operand = loss_operand(training.backward.call)
    if operand is not None:
        tracer.flow.operand = operand
        tracer.expression(operand, training.backward.scope)
    return tracer.flow


def trace_returns(evaluator: Evaluator, function: Scope) -> Flow:
    """Follow what a function of a step gives back, a library calling backward on it."""
    flow = Flow()
    for event in function.returns:
        if event.value is None:
            continue
        site = CallSite(ast.Call(event.value, [], []), function)
        training = Training(site, (), None, (), ((function, function.node),), ())
        tracer = _Tracer(evaluator, training, flow)
        flow.operand = flow.operand or event.value
        tracer.expression(event.value, function)
    return flow


def loss_operand(call: ast.Call) -> ast.expr | None:
    """The loss in `loss.backward()`, `scaler.scale(loss).backward()`, `fabric.backward(loss)`."""
    if not isinstance(call.func, ast.Attribute):
        return None
    receiver = call.func.value
    if call.args and isinstance(receiver, ast.Name | ast.Attribute):
        return call.args[0]
    match receiver:
        case ast.Call(func=ast.Attribute(attr="scale"), args=[loss, *_]):
            return loss
        case _:
            return receiver


def is_model(evaluator: Evaluator, value: Value) -> bool:
    """Whether a value is a torch module that is no loss."""
    if isinstance(value, Made):
        if is_wrapper(value.callee) and value.call.args:
            return is_model(evaluator, evaluator.value(value.call.args[0], value.frame))
        module = value.callee.startswith("torch.nn.") and "functional" not in value.callee
        loss = value.callee.endswith("Loss")
        if value.callee.endswith("DeepSpeedEngine"):
            return True
        return (module and not loss) or value.callee.endswith(".from_pretrained")
    return is_module_class(evaluator, value)


def calls_model(evaluator: Evaluator, site: CallSite) -> bool:
    """Whether a call is a forward pass of the model."""
    func = site.call.func
    if isinstance(func, ast.Attribute) and func.attr == "forward":
        func = func.value
    frame = evaluator.frame(site.scope)
    value = evaluator.value(func, frame)
    if is_model(evaluator, value):
        return True
    if isinstance(value, FunctionValue) or (isinstance(value, Made) and value.callee):
        return False
    path = dotted(func)
    if path is None:
        return False
    name = path.rpartition(".")[2].lower()
    bound = [event for scope in site.scope.around() for event in scope.events.get(path, [])]
    if any(
        event.value is not None and is_model(evaluator, evaluator.value(event.value, frame))
        for event in bound
    ):
        return True
    return bool(bound) and ("model" in name or name in _MODEL_NAMES)


def calls_loss(evaluator: Evaluator, site: CallSite) -> bool:
    """Whether a call computes a loss."""
    name = site.name.lower()
    if "cross_entropy" in name or "loss" in name or "criterion" in name:
        return True
    value = evaluator.value(site.call.func, evaluator.frame(site.scope))
    return isinstance(value, Made) and value.callee.endswith("Loss")


class _Tracer:
    def __init__(self, evaluator: Evaluator, training: Training, flow: Flow | None = None) -> None:
        self.evaluator = evaluator
        self.training = training
        self.flow = flow or Flow()
        self._seen: set[ast.AST] = set()
        self._tainted: dict[ast.AST, bool] = {}

    def expression(self, node: ast.expr, scope: Scope) -> None:
        """Record what an expression is made of and go on with the names in it."""
        if node in self._seen or len(self._seen) > _MAX_VISITED:
            return
        self._seen.add(node)
        for call in _calls(node):
            site = CallSite(call, scope)
            if calls_model(self.evaluator, site):
                self.flow.forwards.append(site)
            elif calls_loss(self.evaluator, site):
                self.flow.losses.append(site)
            self._into_function(call, scope)
        for name in _names(node):
            for event, where in self._events(name, scope):
                self._event(event, where)

    def _into_function(self, call: ast.Call, scope: Scope) -> None:
        callee = self.evaluator.value(call.func, self.evaluator.frame(scope))
        if isinstance(callee, FunctionValue) and self._depends(call, scope):
            for event in callee.scope.returns:
                if event.value is not None:
                    self.expression(event.value, callee.scope)

    def _event(self, event: Event, scope: Scope) -> None:
        if event.value is None or event.node in self._seen:
            return
        if self._depends(event.value, scope):
            self.expression(event.value, scope)
            return
        counting = event.kind == "loop" and _counts(event.value)
        if event.kind in {"assign", "loop"} and not counting:
            self._seen.add(event.node)
            self.flow.fetches.append(Fetch(event.value, scope, event.node))
            self.expression(event.value, scope)

    def _events(self, name: str, scope: Scope) -> Iterator[tuple[Event, Scope]]:
        """The bindings of a name within the step, on into the callers for parameters."""
        for around in scope.around():
            events = around.events.get(name, [])
            for event in events:
                if event.kind == "parameter":
                    yield from self._arguments(name, around)
                elif self.training.holds(around, event.node):
                    yield event, around
            if events:
                yield from self._added(name, around)
                return

    def _added(self, name: str, scope: Scope) -> Iterator[tuple[Event, Scope]]:
        """What is put into a list of that name within the step."""
        for node, element in additions(self.evaluator.project, scope, name):
            if self.training.holds(scope, node) and isinstance(node, ast.Call):
                yield Event(name, "assign", element, (0, 0), element), scope

    def _arguments(self, name: str, function: Scope) -> Iterator[tuple[Event, Scope]]:
        for site in self.evaluator.call_sites(function):
            if not self.training.holds(site.scope, site.call):
                continue
            argument = argument_of(self.evaluator, site, function, name)
            if argument is None:
                continue
            given = argument.expression
            if isinstance(given, ast.Name):
                yield from self._events(given.id, site.scope)
            else:
                yield Event(name, "assign", given, (0, 0), given), site.scope

    def _depends(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression is computed from the model's output."""
        if node in self._tainted:
            return self._tainted[node]
        self._tainted[node] = False
        result = any(self._call_depends(call, scope) for call in _calls(node)) or any(
            event.value is not None and self._depends(event.value, where)
            for name in _names(node)
            for event, where in self._events(name, scope)
        )
        self._tainted[node] = result
        return result

    def _call_depends(self, call: ast.Call, scope: Scope) -> bool:
        if calls_model(self.evaluator, CallSite(call, scope)):
            return True
        callee = self.evaluator.value(call.func, self.evaluator.frame(scope))
        return isinstance(callee, FunctionValue) and any(
            event.value is not None and self._depends(event.value, callee.scope)
            for event in callee.scope.returns
        )


def _calls(node: ast.expr) -> Iterator[ast.Call]:
    return (inner for inner in walk(node) if isinstance(inner, ast.Call))


def _names(node: ast.expr) -> Iterator[str]:
    """The names an expression reads, those of attributes dotted (`self.loss`)."""
    for inner in walk(node):
        if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Load):
            name = dotted(inner)
            if name is not None:
                yield name


def _counts(node: ast.expr) -> bool:
    """Whether a loop only counts: `range(n)`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.func.id == "range")
    )
