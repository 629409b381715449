"""One pass of the training loop in the order in which it runs, functions entered where called.

Branches are taken one after the other and loops once, so that a moment's number says what comes
before it in a step. Code under `no_grad` and what modules do in their forward is left out.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.flow import Fetch
from infrarsi.reading.roles import CLIP_CALLS
from infrarsi.reading.scopes import Function, Scope, dotted
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import ClassValue, FunctionValue, Generated, Instance
from infrarsi.reading.walking import walk
from infrarsi.rules.remembered import remembered

WORK = ("forward", "backward", "clip", "step", "scheduler", "zero_grad")
_WALL = ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns")
_CPU = ("process_time", "thread_time", "process_time_ns", "thread_time_ns")
_OTHER = (
    *("timeit.default_timer", "datetime.datetime.now", "datetime.datetime.utcnow"),
    *("time.clock_gettime", "torch.cuda.Event.record", "torch.Event.record"),
)
CPU_CLOCKS = frozenset(f"time.{name}" for name in _CPU)
CLOCKS = CPU_CLOCKS | {f"time.{name}" for name in _WALL} | {*_OTHER}
SYNCS = frozenset({"synchronize", "item", "tolist", "cpu", "barrier", "mark_step", "numpy"})
_PLAIN = {"range", "len", "int", "float", "bool", "min", "max", "nullcontext", "get", "enumerate"}
_MAX_DEPTH = 6
_MAX_MOMENTS = 2000


@dataclass(frozen=True, eq=False)
class Moment:
    """One thing done in a step. `now_and_then` says that it is not done in every step."""

    role: str
    scope: Scope
    node: ast.AST
    number: int
    now_and_then: bool

    @property
    def place(self) -> Place:
        """Where it is written."""
        source = self.scope.source
        if isinstance(self.node, ast.For | ast.AsyncFor):
            return source.place(self.node.target, self.node.iter)
        return source.place(self.node)


@remembered
def moments(program: Program) -> tuple[Moment, ...]:
    """What one pass of the loop that updates the weights does, in order; empty without one.

    Of a loop without a clock read the next loop around that has one is walked instead.
    """
    training = program.work.training if program.is_followed else None
    if training is None or training.update is None:
        return ()
    found: list[tuple[Moment, ...]] = []
    for loop in (training.update, *training.outer):
        walk = _Walk(program)
        walk.loop(loop.node, loop.scope)
        found.append(tuple(walk.found))
        if any(moment.role == "clock" for moment in walk.found):
            return found[-1]
    return found[0]


@remembered
def clock_calls(program: Program) -> dict[ast.AST, str]:
    """The calls that read a clock, also through a function of the workspace, and which clock."""
    found: dict[ast.AST, str] = {}
    for call in program.called(_clock_names(program)):
        if call.callee in CLOCKS and not call.is_dead:
            found[call.site.call] = call.callee
    for scope, node in _returned_calls(program, found):
        name = found[node]
        for site in program.evaluator.call_sites(scope):
            found.setdefault(site.call, name)
    return found


def _clock_names(program: Program) -> set[str]:
    """The names of clocks' functions, and those that are made to stand for them."""
    names = {clock.rpartition(".")[2] for clock in CLOCKS}
    found = set(names)
    for scope in program.project.scopes.values() if program.is_followed else ():
        for name, events in scope.events.items():
            for event in events:
                match event.value or event.node:
                    case ast.Attribute(attr=given) | ast.Name(id=given) if given in names:
                        found.add(name.rpartition(".")[2])
                    case ast.ImportFrom(names=aliases):
                        found |= {a.asname for a in aliases if a.asname and a.name in names}
                    case _:
                        pass
    return found


def _returned_calls(
    program: Program, clocks: dict[ast.AST, str]
) -> Iterator[tuple[Scope, ast.AST]]:
    """The functions that give a clock's reading back as it is."""
    for scope in program.project.scopes.values():
        if not isinstance(scope.node, Function) or not scope.name:
            continue
        for event in scope.returns:
            if event.value is not None and event.value in clocks:
                yield scope, event.value


class _Walk:
    """Collects the moments; `within` are the functions that are entered at present."""

    def __init__(self, program: Program) -> None:
        self.found: list[Moment] = []
        self._program = program
        self._roles = _roles(program)
        self._fetches = {f.node: f for f in program.work.flow.fetches if _fetches_rows(f)}
        self._within: list[ast.AST] = []
        self._rarely = 0

    def loop(self, node: ast.stmt, scope: Scope) -> None:
        self._statement(node, scope)

    def _statements(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if node in self._fetches:
            self._emit("fetch", node, scope)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case ast.If(test=test, body=body, orelse=orelse):
                self._expression(test, scope)
                self._branch(test, body, scope)
                self._branch(test, orelse, scope)
            case ast.For(iter=over, body=body) | ast.AsyncFor(iter=over, body=body):
                self._expression(over, scope)
                self._statements([*body, *node.orelse], scope)
            case ast.While(test=test, body=body):
                self._expression(test, scope)
                self._statements(body, scope)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                self._with(list(items), body, scope)
            case ast.Try() | ast.TryStar():
                self._statements(node.body, scope)
                for handler in node.handlers:
                    self._statements(handler.body, scope)
                self._statements([*node.orelse, *node.finalbody], scope)
            case ast.Match(cases=cases):
                for case in cases:
                    self._statements(case.body, scope)
            case _:
                self._expressions(node, scope)

    def _branch(self, test: ast.expr, body: list[ast.stmt], scope: Scope) -> None:
        rarely = _is_rare(test)
        self._rarely += rarely
        self._statements(body, scope)
        self._rarely -= rarely

    def _with(self, items: list[ast.withitem], body: list[ast.stmt], scope: Scope) -> None:
        if not items:
            self._statements(body, scope)
            return
        given = items[0].context_expr
        text = unparse(given)
        if "no_grad" in text or "inference_mode" in text:
            return
        value = self._program.evaluator.value(given, self._program.evaluator.frame(scope))
        inner = lambda: self._with(items[1:], body, scope)  # noqa: E731
        if isinstance(value, Generated) and not self._is_entered(value.frame.scope):
            self._around(value.frame.scope, inner)
        elif isinstance(value, Instance) and "__enter__" in _methods(value.of.scope):
            methods = _methods(value.of.scope)
            self._expression(given, scope)
            self._enter(methods["__enter__"])
            inner()
            if "__exit__" in methods:
                self._enter(methods["__exit__"])
        else:
            self._expression(given, scope)
            inner()

    def _around(self, scope: Scope, inner: Callable[[], None]) -> None:
        """The statements of a context manager before its `yield`, the block, and the others."""
        body = getattr(scope.node, "body", [])
        flat: list[ast.stmt] = []
        for statement in body:
            is_try = isinstance(statement, ast.Try)
            flat += [*statement.body, *statement.finalbody] if is_try else [statement]
        yielding = [i for i, s in enumerate(flat) if any(isinstance(n, ast.Yield) for n in walk(s))]
        cut = yielding[0] if yielding else len(flat)
        self._within.append(scope.node)
        self._statements(flat[:cut], scope)
        inner()
        self._statements(flat[cut + 1 :], scope)
        self._within.pop()

    def _expressions(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword):
                self._expression(child, scope)

    def _expression(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Lambda):
            return
        for child in ast.iter_child_nodes(node):
            self._expression(child, scope)
        if node in self._fetches and isinstance(node, ast.expr):
            self._emit("fetch", node, scope)
        if isinstance(node, ast.Call):
            self._call(node, scope)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        value = self._program.evaluator.value(node.func, self._program.evaluator.frame(scope))
        match value:
            case FunctionValue(scope=callee) if not _is_gradless(callee):
                self._enter(callee)
            case ClassValue(scope=made):
                init = _methods(made).get("__init__")
                if init is not None:
                    self._enter(init)
            case _:
                pass
        role = self._roles.get(node)
        if role is not None:
            self._emit(role, node, scope)

    def _enter(self, function: Scope) -> None:
        if self._is_entered(function) or len(self._within) > _MAX_DEPTH:
            return
        self._within.append(function.node)
        body = getattr(function.node, "body", [])
        if isinstance(body, list):
            self._statements(body, function)
        else:
            self._expression(body, function)
        self._within.pop()

    def _is_entered(self, function: Scope) -> bool:
        return function.node in self._within

    def _emit(self, role: str, node: ast.AST, scope: Scope) -> None:
        if len(self.found) < _MAX_MOMENTS:
            number = len(self.found)
            self.found.append(Moment(role, scope, node, number, self._rarely > 0))


def _roles(program: Program) -> dict[ast.AST, str]:
    training = program.work.training
    assert training is not None
    roles: dict[ast.AST, str] = dict.fromkeys(clock_calls(program), "clock")
    for site in program.project.calls:
        if site.name in CLIP_CALLS:
            roles[site.call] = "clip"
        elif site.name == "zero_grad" or site.name == "backward":
            roles[site.call] = site.name
        elif site.name in SYNCS or (site.name == "float" and _reads_loss(site.call)):
            roles[site.call] = "sync"
        elif site.name == "step" and "sched" in (dotted(site.call.func) or "").lower():
            roles[site.call] = "scheduler"
    roles |= {site.call: "forward" for site in program.work.flow.forwards}
    roles |= {site.call: "step" for site in training.steps}
    roles[training.backward.call] = "backward"
    return roles


def _fetches_rows(fetch: Fetch) -> bool:
    """Whether something is called to get at rows, more than counting."""
    for node in walk(fetch.value):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name not in _PLAIN:
                return True
    return isinstance(fetch.node, ast.For)


def _reads_loss(call: ast.Call) -> bool:
    return bool(call.args) and "loss" in unparse(call.args[0])


def _methods(made: Scope) -> dict[str, Scope]:
    return {scope.name: scope for scope in made.inner.values()}


def _is_gradless(scope: Scope) -> bool:
    texts = [unparse(d) for d in getattr(scope.node, "decorator_list", [])]
    return any("no_grad" in text or "inference_mode" in text for text in texts)


def _is_rare(test: ast.expr) -> bool:
    """Whether a test is true in some steps only, more than on some ranks."""
    names = {n.id for n in walk(test) if isinstance(n, ast.Name)}
    names |= {n.attr for n in walk(test) if isinstance(n, ast.Attribute)}
    if any(isinstance(node, ast.Mod) for node in walk(test)):
        return True
    compares = any(isinstance(node, ast.Compare) for node in walk(test))
    return compares and not any("rank" in n or "world" in n or "main" in n for n in names)
