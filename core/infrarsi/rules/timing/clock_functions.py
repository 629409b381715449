"""T305: clocks and synchronisation functions are the ones Python and torch came with.

Whoever replaces `time.perf_counter` or `torch.cuda.synchronize` writes the times himself. Looked
for are assignments to functions of clock modules, by name or through a module's dictionary, names
of clocks that the workspace defines itself, and clocks that leave out waiting. A run that is timed
from outside is not fooled, but what the script prints is.

Mend it by reading the clock as the baseline does. `time.perf_counter` for `time.time` is fine.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import ClassValue, FunctionValue, Known, Symbol, Value
from infrarsi.rules.change import Change
from infrarsi.rules.remembered import remembered
from infrarsi.rules.timing.moments import CPU_CLOCKS, clock_calls
from infrarsi.rules.timing.throughput import is_unit
from infrarsi.rules.timing.windows import main_window

CODE = "T305"
_HELD = "the contract holds the clocks that Python and torch came with"
_NAMES = {
    *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"),
    *("process_time", "thread_time", "clock_gettime", "default_timer", "elapsed_time"),
    *("synchronize", "Event", "sleep"),
}
_OWNERS = (
    *("time", "timeit", "datetime", "torch.cuda", "torch.accelerator", "torch.cpu"),
    *("torch.Event", "torch.mps", "torch.xpu"),
)
_DICTIONARIES = ("__dict__", "vars(", "globals(", "sys.modules")
_PATCHES = {"setattr", "patch", "patch.object", "object", "update", "setitem", "__setattr__"}
_TEXTS = {"perf_counter", "monotonic", "elapsed_time", "synchronize", "time.time", "process_time"}


def find(change: Change) -> Iterator[Violation]:
    """An error where a clock is surely replaced, a warning where a library's names are written."""
    if change.sides is None:
        return
    now, was = change.sides
    known = {text for text, _, _ in _writes(was)}
    for text, place, certain in _writes(now):
        if text not in known:
            severity: Severity = "error" if certain else "warning"
            yield violation(
                CODE, f"`{text}` may replace a clock; {_HELD}.", severity=severity, place=place
            )
    yield from _slow_clock(now, was)
    yield from _own_clock(now, was)


def _slow_clock(now: Program, was: Program) -> Iterator[Violation]:
    """A clock that counts the processor's time where the wall's was read."""
    window, held = main_window(now), main_window(was)
    if window is None or held is None:
        return
    names = {clock_calls(now)[node] for node in (*window.starts, *window.ends)}
    before = {clock_calls(was)[node] for node in (*held.starts, *held.ends)}
    if names & CPU_CLOCKS and not before & CPU_CLOCKS:
        name = min(names & CPU_CLOCKS)
        yield violation(
            CODE,
            f"The step is timed with `{name}` instead of `{min(before)}`, which leaves out waiting "
            f"and other processes; {_HELD}.",
            place=window.place,
        )


def _own_clock(now: Program, was: Program) -> Iterator[Violation]:
    """A name of a clock that is bound to something of the workspace."""
    known = {name for name, _ in _own_names(was)} | {text for text, _, _ in _writes(now)}
    for name, place in _own_names(now):
        if name not in known:
            known.add(name)
            yield violation(
                CODE,
                f"`{name}` is the workspace's own; {_HELD}.",
                severity="warning",
                place=place,
            )
    for name, place in _rebound(now):
        if name not in {held for held, _ in _rebound(was)}:
            text = f"`{name}` is bound to something else; {_HELD}."
            yield violation(CODE, text, severity="warning", place=place)
    scaled = {name for name, _ in _scaled(was)}
    for name, place in _scaled(now):
        if name not in scaled:
            yield violation(CODE, f"`{name}` scales what a clock reads; {_HELD}.", place=place)


@remembered
def _rebound(program: Program) -> tuple[tuple[str, Place], ...]:
    """Files in which a clock module's name is bound to something of their own."""
    found: list[tuple[str, Place]] = []
    for scope in program.project.modules.values():
        for name in ("time", "timeit", "perf_counter", "monotonic"):
            for event in scope.events.get(name, ()):
                if event.kind == "define" or (
                    event.kind == "assign" and isinstance(event.value, ast.Call)
                ):
                    body = getattr(event.node, "body", None)
                    place = scope.source.place(body[0] if body else event.node)
                    found.append((name, place))
    return tuple(found)


@remembered
def _scaled(program: Program) -> tuple[tuple[str, Place], ...]:
    """Functions that give back a clock's reading times a number that is no unit."""
    found: list[tuple[str, Place]] = []
    for scope in program.project.scopes.values():
        for event in scope.returns if scope.name else ():
            match event.value:
                case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
                    sides = (left, right) if left in clock_calls(program) else (right, left)
                    if sides[0] not in clock_calls(program):
                        continue
                    value = program.evaluator.value(sides[1], program.evaluator.frame(scope))
                    number = value.value if isinstance(value, Known) else None
                    if isinstance(number, int | float) and not is_unit(float(number)):
                        found.append((scope.name, scope.source.place(event.value)))
                case _:
                    pass
    return tuple(found)


@remembered
def _own_names(program: Program) -> tuple[tuple[str, Place], ...]:
    """Calls that read as a clock's but enter the workspace's code."""
    found: list[tuple[str, Place]] = []
    for call in program.called(_NAMES - {"Event", "sleep", "time"}):
        func = call.site.call.func
        value = program.evaluator.value(func, call.frame)
        if isinstance(value, FunctionValue | ClassValue):
            found.append((unparse(func), call.place))
    for call in program.called({"time"}):
        value = program.evaluator.value(call.site.call.func, call.frame)
        if isinstance(value, FunctionValue) and unparse(call.site.call.func) == "time.time":
            found.append(("time.time", call.place))
    return tuple(found)


@remembered
def _writes(program: Program) -> tuple[tuple[str, Place, bool], ...]:
    """Statements that put something into a library's module, and whether it is a clock."""
    if not program.is_followed:
        return ()
    return (*_assignments(program), *_patches(program))


def _assignments(program: Program) -> Iterator[tuple[str, Place, bool]]:
    for name in sorted(_NAMES):
        for scope, path in program.project.attribute_writes.get(name, ()):
            for event in scope.events[path]:
                yield from _assigned(program, event.node, scope)
    for source in program.project.files.values():
        if not any(word in source.text for word in _DICTIONARIES):
            continue
        for node in source.nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                statement = source.statement(node)
                yield from _assigned(
                    program, statement, program.project.scope_of(source.file, statement)
                )


def _assigned(program: Program, node: ast.AST, scope: Scope) -> Iterator[tuple[str, Place, bool]]:
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        certain = _replaces(program, target, scope)
        if certain is not None:
            yield program.spell(target, scope)[:60], scope.source.place(node), certain


def _replaces(program: Program, target: ast.expr, scope: Scope) -> bool | None:
    """Whether a target is a clock's name in its module; None where it is no library's."""
    frame = program.evaluator.frame(scope)
    match target:
        case ast.Attribute(value=base, attr=name):
            owner = program.evaluator.value(base, frame)
            return True if name in _NAMES and _owns(owner) else None
        case ast.Subscript(value=base, slice=key):
            text = unparse(base)
            if text == "sys.modules":
                named = _text_of(key)
                return named in {"time", "timeit", "torch.cuda"} if named is not None else False
            if text.startswith("globals("):
                return True if _text_of(key) in _NAMES else None
            if _is_dictionary(text):
                named = _text_of(key)
                return True if named in _NAMES else (False if named is None else None)
            return None
        case _:
            return None


def _patches(program: Program) -> Iterator[tuple[str, Place, bool]]:
    for call in program.called({*_PATCHES, "swap_code", "pythonapi"}):
        if call.is_dead:
            continue
        site = call.site.call
        certain = _patch(program, call.frame.scope, site)
        if certain is not None:
            yield call.signature[:60], call.place, certain


def _patch(program: Program, scope: Scope, call: ast.Call) -> bool | None:
    frame = program.evaluator.frame(scope)
    texts = [_text_of(argument) for argument in call.args[:2]]
    func = unparse(call.func)
    match func.rpartition(".")[2]:
        case "setattr" if len(call.args) >= 3:
            owner = program.evaluator.value(call.args[0], frame)
            if _owns(owner):
                return texts[1] in _NAMES if texts[1] is not None else False
            return False if _imports(call.args[0]) else None
        case "patch" | "object" | "setitem" if "patch" in func:
            named = " ".join(text for text in texts if text)
            return True if any(name in named for name in _TEXTS) else None
        case "update" if _is_dictionary(func.removesuffix(".update")):
            return False
        case _:
            return None


def _owns(value: Value) -> bool:
    return isinstance(value, Symbol) and any(
        value.name == owner or value.name.startswith(f"{owner}.") for owner in _OWNERS
    )


def _is_dictionary(text: str) -> bool:
    """Whether the text means a module's or class's dictionary, more than the settings of `self`."""
    own = ("self.", "vars(self", "args.", "vars(args", "cfg.", "vars(cfg", "config.", "vars(config")
    return (text.endswith("__dict__") or text.startswith("vars(")) and not text.startswith(own)


def _imports(node: ast.expr) -> bool:
    text = unparse(node)
    return "import_module" in text or "__import__" in text or "sys.modules" in text


def _text_of(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case _:
            return None
