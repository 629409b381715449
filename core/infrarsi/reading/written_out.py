"""`Writer`: an expression of a training step with its names and functions written out.

Local names are replaced by what was assigned to them, calls of workspace functions by what they
return, the model's passes by the name `hidden`; reshaping and moves between devices are left out.
Two steps that compute their loss alike come out alike, however they are cut into functions.
"""

import ast
from collections.abc import Mapping, Sequence

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.flow import Flow, calls_loss, calls_model, is_model
from infrarsi.reading.frames import bind_arguments
from infrarsi.reading.objects import is_method, is_wrapper
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Event, Function, Guard, Scope, guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.training import is_module_class
from infrarsi.reading.values import ClassValue, FunctionValue, Instance, Known, Made, Symbol, Value
from infrarsi.reading.walking import walk

_MAX_WRITTEN = 3000
_MAX_DEPTH = 8
_SHAPES = {
    "view",
    "reshape",
    "flatten",
    "contiguous",
    "squeeze",
    "unsqueeze",
    "cuda",
    "cpu",
    "view_as",
    "pin_memory",
}
CASTS = {"float": "fp32", "double": "fp64", "bfloat16": "bf16", "half": "fp16"}
FORMATS = {
    "torch.float32": "fp32",
    "torch.float": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.half": "fp16",
    "torch.float64": "fp64",
    "torch.double": "fp64",
}

Bindings = Mapping[str, ast.expr]


class Writer:
    """Writes out expressions of one program.

    `origins` says where a written node comes from; `losses` are the loss calls met on the way.
    """

    def __init__(self, evaluator: Evaluator, flow: Flow) -> None:
        self.evaluator = evaluator
        self.origins: dict[ast.AST, tuple[Scope, ast.AST]] = {}
        self.losses: list[CallSite] = []
        self._forwards = {site.call for site in flow.forwards}
        self._fetches = _first_fetches(flow)
        self._open: set[Event | Scope] = set()
        self._n_written = 0

    def write(self, node: ast.expr, scope: Scope, given: Bindings | None = None) -> ast.expr:
        """The expression written out; `given` are the arguments of the function it stands in."""
        self._n_written += 1
        if self._n_written > _MAX_WRITTEN or len(self._open) > 4 * _MAX_DEPTH:
            return _name("deep")
        written = self._write(node, scope, given or {})
        self.origins.setdefault(written, (scope, node))
        return written

    def _write(self, node: ast.expr, scope: Scope, given: Bindings) -> ast.expr:
        if isinstance(node, ast.Name | ast.Attribute | ast.BinOp):
            value = self.evaluator.value(node, self.evaluator.frame(scope))
            if isinstance(value, Known) and _is_settled(node, value, scope, given):
                return ast.Constant(value.value)
            if isinstance(value, Symbol):
                return _name(value.name)
        match node:
            case ast.Name(id=name):
                return self._named(name, node, scope, given)
            case ast.Attribute():
                return self._attribute(node, scope, given)
            case ast.Call():
                return self._call(node, scope, given)
            case ast.Subscript():
                base = self.write(node.value, scope, given)
                index = self._children(node.slice, scope, given)
                return _part(base, index)
            case ast.NamedExpr(value=value):
                return self.write(value, scope, given)
            case _:
                return self._children(node, scope, given)

    def _children(self, node: ast.expr, scope: Scope, given: Bindings) -> ast.expr:
        def field(value: object) -> object:
            if isinstance(value, ast.expr):
                return self.write(value, scope, given)
            if isinstance(value, ast.comprehension | ast.keyword | ast.Slice):
                return rebuilt(value)
            return [field(item) for item in value] if isinstance(value, list) else value

        def rebuilt(part: ast.AST) -> ast.AST:
            return type(part)(**{name: field(value) for name, value in ast.iter_fields(part)})

        return rebuilt(node)  # type: ignore[return-value]

    def _named(self, name: str, at: ast.expr, scope: Scope, given: Bindings) -> ast.expr:
        for number, around in enumerate(scope.around()):
            if number and isinstance(around.node, ast.ClassDef):
                continue
            events = around.events.get(name)
            if events:
                inside = given if number == 0 else {}
                return self._folded(events, around, inside, at if number == 0 else None)
        return _name(name)

    def _folded(
        self, events: Sequence[Event], scope: Scope, given: Bindings, at: ast.expr | None
    ) -> ast.expr:
        """What the bindings before `at` leave, each written out."""
        used = (at.lineno, at.col_offset) if at is not None else None
        before = [event for event in events if used is None or event.end <= used]
        shared = {guard.test for guard in guards_around(scope, at)} if at is not None else set()
        current: ast.expr | None = None
        for event in before:
            guards = [guard for guard in event.guards if guard.test not in shared]
            holds = self.evaluator.hold(guards, self.evaluator.frame(scope))
            if holds is False or _is_none(event):
                continue
            new = self._bound(event, scope, given, current)
            if current is None or holds is True:
                current = new
            else:
                current = ast.Call(_name("either"), [current, new], [])
        return current or _name("carried" if at is not None else events[0].name)

    def _bound(
        self, event: Event, scope: Scope, given: Bindings, current: ast.expr | None
    ) -> ast.expr:
        if event.kind == "parameter":
            this = "self" if event.name == "self" else "argument"
            return given.get(event.name) or _name(this)
        if event.node in self._fetches:
            return _at(_name("rows"), event.path)
        if event.value is None or event in self._open or event.kind in {"import", "define"}:
            return _name("carried" if event in self._open else event.name)
        self._open.add(event)
        try:
            value = self.write(event.value, scope, given)
        finally:
            self._open.discard(event)
        if event.kind == "loop":
            return ast.Call(_name("each"), [value], [])
        if event.kind == "augment" and event.operator is not None:
            return ast.BinOp(current or _name("carried"), event.operator, value)
        return _at(value, event.path)

    def _attribute(self, node: ast.Attribute, scope: Scope, given: Bindings) -> ast.expr:
        path = unparse(node)
        events = scope.events.get(path)
        if events and any(event.end <= (node.lineno, node.col_offset) for event in events):
            return self._folded(events, scope, given, node)
        base = self.write(node.value, scope, given)
        if isinstance(base, ast.Call):
            for keyword in base.keywords:
                if keyword.arg == node.attr:
                    return keyword.value
        return base if _is_named(base, "hidden") else ast.Attribute(base, node.attr, ast.Load())

    def _call(self, node: ast.Call, scope: Scope, given: Bindings) -> ast.expr:
        site = CallSite(node, scope)
        value = self.evaluator.value(node.func, self.evaluator.frame(scope))
        if isinstance(value, ClassValue):
            return self._called(_name(value.scope.name), node, scope, given)
        if node in self._forwards or calls_model(self.evaluator, site):
            return self._forward(site, value, given)
        if self._runs_module(site, value):
            return _name("hidden")
        function = self._function(site, value)
        if function is not None and self._may_enter(function):
            return self._entered(function, site, given)
        if calls_loss(self.evaluator, site):
            self.losses.append(site)
        if isinstance(value, Made) and value.callee.endswith("Loss"):
            return self._loss_object(value, node, scope, given)
        if isinstance(node.func, ast.Attribute) and not isinstance(value, Symbol):
            return self._method(node, node.func, scope, given)
        callee = _name(value.name) if isinstance(value, Symbol) else node.func
        return self._called(callee, node, scope, given)

    def _called(self, callee: ast.expr, node: ast.Call, scope: Scope, given: Bindings) -> ast.expr:
        arguments = [self.write(argument, scope, given) for argument in node.args]
        keywords = [ast.keyword(k.arg, self.write(k.value, scope, given)) for k in node.keywords]
        name = callee.id.rpartition(".")[2] if isinstance(callee, ast.Name) else ""
        if name in _SHAPES and isinstance(callee, ast.Name) and arguments:
            return arguments[0]
        return ast.Call(callee, arguments, keywords)

    def _method(
        self, node: ast.Call, func: ast.Attribute, scope: Scope, given: Bindings
    ) -> ast.expr:
        base = self.write(func.value, scope, given)
        if func.attr in _SHAPES:
            return base
        if func.attr in CASTS and not node.args:
            return _cast(base, CASTS[func.attr])
        if func.attr in {"to", "type"}:
            frame = self.evaluator.frame(scope)
            given_formats = [*node.args, *(k.value for k in node.keywords)]
            for argument in given_formats:
                symbol = self.evaluator.value(argument, frame)
                if isinstance(symbol, Symbol) and symbol.name in FORMATS:
                    return _cast(base, FORMATS[symbol.name])
            return base
        return self._called(ast.Attribute(base, func.attr, ast.Load()), node, scope, given)

    def _loss_object(self, made: Made, node: ast.Call, scope: Scope, given: Bindings) -> ast.expr:
        """`nn.CrossEntropyLoss(...)(logits, targets)` as the function call it stands for."""
        last = made.callee.rpartition(".")[2]
        name = "torch.nn.functional." + {"CrossEntropyLoss": "cross_entropy"}.get(last, last)
        call = self._called(_name(name), node, scope, given)
        if isinstance(call, ast.Call):
            there = made.frame.scope
            call.keywords += [
                ast.keyword(k.arg, self.write(k.value, there)) for k in made.call.keywords
            ]
        return call

    def _forward(self, site: CallSite, value: Value, given: Bindings) -> ast.expr:
        """What the model gives: its own loss where it computes one, else `hidden`."""
        scope = forward_scope(self.evaluator, site, value)
        if scope is None or not self._has_loss(scope) or not self._may_enter(scope):
            return _name("hidden")
        return self._entered(scope, site, given)

    def _has_loss(self, scope: Scope) -> bool:
        calls = self.evaluator.project.calls
        inside = [site for site in calls if any(s is scope for s in site.scope.around())]
        return any(calls_loss(self.evaluator, site) for site in inside)

    def _runs_module(self, site: CallSite, value: Value) -> bool:
        if is_model(self.evaluator, value):
            return True
        func = site.call.func
        events = site.scope.events.get(func.id, []) if isinstance(func, ast.Name) else []
        return bool(events) and all(event.kind == "loop" for event in events)

    def _function(self, site: CallSite, value: Value) -> Scope | None:
        """What is entered: where a base class leaves a method empty, the one that fills it."""
        if isinstance(value, FunctionValue) and value.scope.returns:
            return value.scope
        if not isinstance(site.call.func, ast.Attribute) or isinstance(value, Symbol | Made):
            return None
        filled = [
            scope
            for scope in self.evaluator.project.scopes.values()
            if scope.name == site.name and scope.returns and is_method(scope)
        ]
        return filled[0] if len(filled) == 1 else None

    def _may_enter(self, scope: Scope) -> bool:
        return not scope.is_generator and scope not in self._open and bool(scope.returns)

    def _entered(self, scope: Scope, site: CallSite, given: Bindings) -> ast.expr:
        """What a function of the workspace returns for this call."""
        definition = scope.node
        frame = self.evaluator.frame(site.scope)
        bound = None
        if isinstance(definition, Function):
            bound = bind_arguments(site.call, definition, frame, is_method=is_method(scope))
        inner = {
            name: self.write(argument.expression, site.scope, given)
            for name, argument in (bound or {}).items()
        }
        self._open.add(scope)
        try:
            results = self._returned(scope, inner)
        finally:
            self._open.discard(scope)
        return results[0] if len(results) == 1 else ast.Call(_name("either"), results, [])

    def _returned(self, scope: Scope, inner: Bindings) -> list[ast.expr]:
        results: list[ast.expr] = []
        frame = self.evaluator.frame(scope)
        for event in scope.returns:
            guards: Sequence[Guard] = event.guards
            if event.value is not None and self.evaluator.hold(guards, frame) is not False:
                results.append(self.write(event.value, scope, inner))
        return results or [_name("nothing")]


def forward_scope(evaluator: Evaluator, site: CallSite, value: Value) -> Scope | None:
    """The `forward` of the workspace's module a call passes through; None where unknown."""
    candidates = [value]
    func = site.call.func
    if isinstance(func, ast.Name):
        bound = [e for s in site.scope.around() for e in s.events.get(func.id, [])]
        frame = evaluator.frame(site.scope)
        candidates += [evaluator.value(e.value, frame) for e in bound if e.value is not None]
    for candidate in candidates:
        while isinstance(candidate, Made) and is_wrapper(candidate.callee) and candidate.call.args:
            candidate = evaluator.value(candidate.call.args[0], candidate.frame)
        if isinstance(candidate, FunctionValue) and candidate.scope.name == "forward":
            return candidate.scope
        if isinstance(candidate, Instance) and is_module_class(evaluator, candidate):
            inner = candidate.of.scope.inner.values()
            return next((scope for scope in inner if scope.name == "forward"), None)
    return None


def _first_fetches(flow: Flow) -> set[ast.AST]:
    """The bindings that draw rows, without those that only rework rows drawn before."""
    drawn = {name for fetch in flow.fetches for name in _bound_names(fetch.node)}
    return {
        fetch.node
        for fetch in flow.fetches
        if not any(isinstance(n, ast.Name) and n.id in drawn for n in walk(fetch.value))
    }


def _bound_names(node: ast.AST) -> set[str]:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return {n.id for t in targets if t is not None for n in walk(t) if isinstance(n, ast.Name)}


def is_cast(node: ast.AST) -> str | None:
    """The format a written node is cast to, None where it is no cast."""
    match node:
        case ast.Call(func=ast.Name(id="cast"), args=[_, ast.Constant(value=str(to))]):
            return to
        case _:
            return None


def _cast(base: ast.expr, to: str) -> ast.expr:
    return ast.Call(_name("cast"), [base, ast.Constant(to)], [])


def _at(base: ast.expr, path: Sequence[int]) -> ast.expr:
    for index in path:
        base = _part(base, ast.Constant(index))
    return base


def _part(base: ast.expr, index: ast.expr) -> ast.expr:
    match base, index:
        case ast.Tuple(elts=items), ast.Constant(value=int(number)) if number < len(items):
            return items[number]
        case ast.Name(id="hidden"), ast.Constant():
            return base
        case ast.Call(func=ast.Name(id="either"), args=args), ast.Constant():
            return ast.Call(_name("either"), [_part(arg, index) for arg in args], [])
        case _:
            return ast.Subscript(base, index, ast.Load())


def _is_settled(node: ast.expr, value: Known, scope: Scope, given: Bindings) -> bool:
    """Whether a known value is what the name holds, not only the start of what a loop adds up."""
    if value.value is None:
        return isinstance(node, ast.Constant)
    if not isinstance(node, ast.Name):
        return True
    return node.id not in given and not any(e.in_loop for e in scope.events.get(node.id, []))


def _is_none(event: Event) -> bool:
    return isinstance(event.value, ast.Constant) and event.value.value is None


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
