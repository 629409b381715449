"""What is timed: differences of two clock reads, and what a step does between them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.calls import argument_of
from infrarsi.reading.scopes import Event, Scope, dotted
from infrarsi.rules.remembered import remembered
from infrarsi.rules.timing.moments import WORK, Moment, clock_calls, moments

_MAX_DEPTH = 8


@dataclass(frozen=True, eq=False)
class Window:
    """A difference of clock reads: the calls its first and its second time come from."""

    program: Program
    scope: Scope
    node: ast.expr
    starts: tuple[ast.AST, ...]
    ends: tuple[ast.AST, ...]

    @property
    def place(self) -> Place:
        """Where the difference is written."""
        return self.scope.source.place(self.node)

    @property
    def first(self) -> list[Moment]:
        """The reads in the loop it starts with."""
        return [m for m in moments(self.program) if m.node in self.starts and m.role == "clock"]

    @property
    def last(self) -> list[Moment]:
        """The reads in the loop it ends with."""
        return [m for m in moments(self.program) if m.node in self.ends and m.role == "clock"]

    @property
    def is_open(self) -> bool:
        """Whether it holds all of a step, or goes over several steps."""
        first, last = self.first, self.last
        if not first or not last or any(m.now_and_then for m in first):
            return True
        return min(m.number for m in first) >= max(m.number for m in last)

    @property
    def spans_steps(self) -> bool:
        """Whether it may go over several steps."""
        return not self.first or not self.last or any(m.now_and_then for m in self.first)

    def covers(self, number: int) -> bool:
        """Whether what happens at this point of a pass is timed."""
        first, last = self.first, self.last
        if not first or not last:
            return True
        begins, ends = {m.number for m in first}, {m.number for m in last}
        if any(m.now_and_then for m in first):
            return not max(ends) < number < min(begins)
        marks = begins | ends
        before = max((n for n in marks if n < number), default=max(marks))
        after = min((n for n in marks if n > number), default=min(marks))
        return before in begins and after in ends

    @property
    def restarts(self) -> Moment | None:
        """The first read, where it is taken anew in a loop within a step that the last is not."""
        training = self.program.work.training
        loops = [loop.node for loop in training.inner] if training is not None else []
        for moment in self.first:
            around = set(moment.scope.source.ancestors(moment.node))
            for loop in loops:
                ends = [set(m.scope.source.ancestors(m.node)) for m in self.last]
                if loop in around and not any(loop in end for end in ends):
                    return moment
        return None


@remembered
def windows(program: Program) -> tuple[Window, ...]:
    """All differences of clock reads in the reachable files."""
    if not clock_calls(program):
        return ()
    return tuple(_windows(program))


@remembered
def main_window(program: Program) -> Window | None:
    """The window that holds most of what trains; None where none is found."""
    work = [m for m in moments(program) if m.role in WORK or m.role == "fetch"]
    best, most = None, 0
    for window in windows(program):
        held = sum(window.covers(m.number) for m in work)
        if held > most:
            best, most = window, held
    return best


def reads(program: Program, node: ast.expr, scope: Scope, depth: int = 0) -> list[ast.AST]:
    """The clock reads an expression may hold as they are."""
    if node in clock_calls(program):
        return [node]
    if depth > _MAX_DEPTH:
        return []
    match node:
        case ast.Name() | ast.Attribute():
            found = [
                read
                for event, where in bindings(program, node, scope)
                if event.value is not None and event.kind == "assign"
                for read in reads(program, event.value, where, depth + 1)
            ]
            return list(dict.fromkeys(found))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=ast.Constant()):
            return reads(program, left, scope, depth + 1)
        case ast.Subscript(value=ast.Name() as held):
            return reads(program, held, scope, depth + 1)
        case ast.IfExp(body=body, orelse=orelse):
            both = [reads(program, part, scope, depth + 1) for part in (body, orelse)]
            return [*both[0], *both[1]]
        case _:
            return []


def bindings(program: Program, node: ast.expr, scope: Scope) -> Iterator[tuple[Event, Scope]]:
    """What binds a name or an attribute, on into the callers for a parameter."""
    if isinstance(node, ast.Name):
        for around in scope.around():
            events = around.events.get(node.id, [])
            if events:
                yield from _followed(program, events, around)
                return
    elif isinstance(node, ast.Attribute) and dotted(node) is not None:
        for where, path in program.project.attribute_writes.get(node.attr, []):
            for event in where.events.get(path, []):
                yield event, where


def _followed(program: Program, events: list[Event], scope: Scope) -> Iterator[tuple[Event, Scope]]:
    for event in events:
        if event.kind != "parameter":
            if not event.path:
                yield event, scope
            continue
        for site in program.evaluator.call_sites(scope):
            given = argument_of(program.evaluator, site, scope, event.name)
            if given is not None:
                made = given.expression
                yield Event(event.name, "assign", made, (0, 0), made), given.frame.scope


def _windows(program: Program) -> Iterator[Window]:
    for file, source in program.project.files.items():
        for node in source.nodes:
            match node:
                case ast.BinOp(
                    left=left, op=ast.Sub(), right=ast.Name() | ast.Attribute() as right
                ):
                    if not isinstance(left, ast.Name | ast.Attribute | ast.Call | ast.BinOp):
                        continue
                case ast.Call(func=ast.Attribute(attr="elapsed_time", value=right), args=[left]):
                    yield from _of_events(program, node, left, right, file)
                    continue
                case _:
                    continue
            scope = program.project.scope_of(file, node)
            ends = reads(program, left, scope)
            starts = reads(program, right, scope) if ends else []
            if starts and ends:
                yield Window(program, scope, node, tuple(starts), tuple(ends))


def _of_events(
    program: Program, node: ast.Call, end: ast.expr, start: ast.expr, file: str
) -> Iterator[Window]:
    """`start.elapsed_time(end)`: the events' records are the reads."""
    names = dotted(start), dotted(end)
    found: tuple[list[ast.AST], list[ast.AST]] = ([], [])
    for call in clock_calls(program):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            for name, side in zip(names, found, strict=True):
                if call.func.attr == "record" and dotted(call.func.value) == name:
                    side.append(call)
    if found[0] and found[1]:
        scope = program.project.scope_of(file, node)
        yield Window(program, scope, node, tuple(found[0]), tuple(found[1]))
