"""What expressions amount to under one launch: lazily, without executing anything.

A small abstract interpreter. Names are resolved where they are bound, parameters at their call
sites, conditions where they can be decided; whatever is not certain is Unknown with a reason.
With `overrides` the same question is answered as if some literals held other values.
"""

import ast
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from infrarsi.frozen import Scalar
from infrarsi.reading import calls, commands, expressions, heirs, imports, mappings, objects
from infrarsi.reading.externals import is_builtin, literal
from infrarsi.reading.frames import Frame, frame_of
from infrarsi.reading.half_typed import HALF_TYPED
from infrarsi.reading.memory import NEVER_KEPT, Kept
from infrarsi.reading.operators import binary, is_true, unary
from infrarsi.reading.options import Option, find_options
from infrarsi.reading.parts import CallSite
from infrarsi.reading.project import Project
from infrarsi.reading.scopes import Event, Function, Guard, Scope, parameters
from infrarsi.reading.values import (
    ClassValue,
    FunctionValue,
    Instance,
    Known,
    Many,
    Origin,
    Record,
    Symbol,
    Unknown,
    Value,
    merge_origins,
    same_value,
)

T = TypeVar("T")
_MAX_DEPTH = 60
_MAX_WORK = 200_000


class Evaluator:
    """Evaluates expressions of one project."""

    def __init__(self, project: Project, overrides: Mapping[str, Scalar] | None = None) -> None:
        """`overrides` gives values by `Origin.key`."""
        self.project = project
        self.launch = project.launch
        self._overrides = overrides or {}
        self.trace = project.trace
        self.subject: Hashable = ("evaluator", frozenset(self._overrides.items()))
        self.trace.subjects[self.subject] = self
        self._known: dict[tuple[ast.AST, Frame], Kept] = {}
        self._open: set[tuple[ast.AST, Frame]] = set()
        self._work = 0
        self.calling: list[Scope] = []
        self.importing: list[tuple[str, str]] = []
        self.holding: set[tuple[Scope, str]] = set()
        self.entered: dict[tuple[ast.AST, Frame, Scope], Frame] = {}
        self.spread: dict[tuple[ast.Call, Frame], ast.Call] = {}
        self.heirs: dict[Scope, list[Scope]] = {}
        self.commands: dict[Scope, commands.Command] = {}
        self.is_ready = False
        heirs.index_heirs(self)
        commands.index_commands(self)
        self.is_ready = True

    @property
    def options(self) -> tuple[Option, ...]:
        """All options any parser of the job defines."""
        return find_options(self.project)

    def frame(self, scope: Scope) -> Frame:
        """The scope without a particular call in mind."""
        return frame_of(scope)

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """What `node`, written in `frame`, amounts to."""
        key = (node, frame)
        known = self._known.get(key)
        if known is not None:
            self.trace.need(known[1])
            return known[0]
        home = frame.scope.source
        kept = self.trace.recall(home, (self.subject, key))
        if kept is not None:
            self._known[key] = kept
            return kept[0]
        self._work += 1
        if key in self._open:
            self.trace.never()
            return Unknown("it depends on itself")
        if len(self._open) > _MAX_DEPTH or self._work > _MAX_WORK:
            self.trace.never()
            return Unknown("it is too deeply computed to be followed")
        self._open.add(key)
        self.trace.begin()
        try:
            self.project.modules.get(home.file)
            result = self._evaluate(node, frame)
        finally:
            self._open.discard(key)
            needs = self.trace.end()
        self._known[key] = result, needs
        self.trace.keep(home, (self.subject, key), (result, needs))
        return result

    def ask(self, question: Hashable, answer: Callable[[], T]) -> T:
        """What was found out before and still holds, else the answer."""
        return self.trace.ask(None, (self.subject, question), answer)

    def settled(self, ask: Callable[..., T], *key: Hashable) -> T:
        """A question of the whole project: who asks needs what it gives, not how it is found."""
        if self._open:
            return ask(self, *key)
        return self.trace.look(self.subject, ask, *key)

    def preset(self, node: ast.expr, frame: Frame, value: Value) -> None:
        """Let an expression that was made up stand for a value."""
        self._known[(node, frame)] = value, NEVER_KEPT

    def named(self, node: ast.expr, frame: Frame, name: str) -> Value:
        """The value of an expression bound to `name`: a literal there becomes an origin."""
        value = self.value(node, frame)
        if not isinstance(value, Known):
            return value
        place = frame.scope.source.place(node)
        if literal(node):
            origin = Origin("constant", name, value.value, frame.scope.source.file, place)
            return self.originate(origin)
        renamed = isinstance(node, ast.Name | ast.Attribute) or value.direct() is not None
        if value.place is not None and renamed:
            return value
        return Known(value.value, value.origins, place)

    def originate(self, origin: Origin) -> Known:
        """The value of one literal, or what the overrides put in its stead."""
        value = self._overrides.get(origin.key, origin.value)
        changed = Origin(origin.carrier, origin.name, value, origin.file, origin.place)
        return Known(value, (changed,), origin.place)

    def name(self, name: str, frame: Frame, at: ast.expr | None = None) -> Value:
        """What a name means in `frame`, where `at` is evaluated."""
        for number, around in enumerate(frame.around()):
            is_class = isinstance(around.scope.node, ast.ClassDef)
            if number and is_class:
                continue
            events = around.scope.events.get(name)
            if events:
                used = at if number == 0 else None
                since = _last_binding(events, used)
                value = self.fold(events, around, used)
                return mappings.changed(self, value, name, around, used, since)
        starred = imports.starred(self, name, frame)
        if starred is not None:
            return starred
        if name == "__file__":
            return Known(frame.scope.source.file)
        if name == "__name__":
            is_entry = frame.scope.source.file == self.launch.script
            return Known("__main__" if is_entry else frame.scope.source.file)
        if is_builtin(name):
            return Symbol(f"builtins.{name}")
        if name == HALF_TYPED:
            return Unknown("the line that sets it is half typed")
        return Unknown(f"`{name}` is not defined where it is used")

    def fold(
        self,
        events: Sequence[Event],
        frame: Frame,
        at: ast.expr | None,
        initial: Value | None = None,
    ) -> Value:
        """What a name holds after its bindings, or where `at` stands."""
        used = (at.lineno, at.col_offset) if at is not None else None
        before = [event for event in events if used is None or event.end <= used]
        current = initial
        for event in before or events:
            holds = self.hold(event.guards, frame)
            if holds is False:
                continue
            new = self._bind(event, frame, current)
            if current is None or holds is True:
                current = new
            elif not same_value(current, new):
                return Unknown(f"`{event.name}` depends on a condition that is not known")
        if current is None:
            return Unknown(f"`{events[0].name}` is not set under this launch")
        return self._changed_later(events, before, frame, current, at)

    def hold(self, guards: Sequence[Guard], frame: Frame) -> bool | None:
        """Whether all conditions hold, None where that is not certain."""
        result: bool | None = True
        for guard in guards:
            truth = None if guard.test is None else is_true(self.value(guard.test, frame))
            if truth is None:
                result = None
            elif truth != guard.holds:
                return False
        return result

    def call_sites(self, function: Scope) -> list[CallSite]:
        """Where the function is called (for a constructor: where the class is)."""
        if function.name == "__init__" and function.parent is not None:
            wanted = function.parent
        else:
            wanted = function
        sites: list[CallSite] = []
        unclear: list[CallSite] = []
        for site in self.project.calls_by_name.get(wanted.name, []):
            callee = self.value(site.call.func, self.frame(site.scope))
            scope = callee.scope if isinstance(callee, FunctionValue | ClassValue) else None
            if scope is wanted:
                sites.append(site)
            elif isinstance(callee, Unknown) and isinstance(site.call.func, ast.Attribute):
                unclear.append(site)
        if wanted is not function:
            sites += heirs.constructor_calls(self, wanted)
        return sites or (unclear if objects.is_method(function) else [])

    def _evaluate(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Constant(value=value):
                plain = isinstance(value, bool | int | float | str | None)
                return Known(value) if plain else Unknown("it is no plain number or text")
            case ast.Name(id=name):
                return expressions.comprehended(node, frame) or self.name(name, frame, node)
            case ast.Attribute():
                return objects.attribute_value(self, node, frame)
            case ast.Call():
                return calls.call_value(self, node, frame)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return Many(tuple(self.value(element, frame) for element in elements))
            case ast.Dict():
                return expressions.dictionary(self, node, frame)
            case ast.Subscript():
                return expressions.subscript(self, node, frame)
            case ast.Lambda() if node in self.project.scopes:
                return FunctionValue(self.project.scopes[node], frame)
            case _:
                return self._operation(node, frame)

    def _operation(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                return expressions.binary_value(
                    self, op, self.value(left, frame), self.value(right, frame)
                )
            case ast.UnaryOp(op=op, operand=operand):
                return unary(op, self.value(operand, frame))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return expressions.comparison(self, left, op, right, frame)
            case ast.BoolOp():
                return expressions.choice(self, node, frame)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = is_true(self.value(test, frame))
                if truth is None:
                    first, second = self.value(body, frame), self.value(orelse, frame)
                    same = same_value(first, second)
                    return first if same else Unknown("it depends on a condition not known")
                return self.value(body if truth else orelse, frame)
            case ast.JoinedStr(values=parts):
                return expressions.joined_text(self, parts, frame)
            case ast.NamedExpr(value=value):
                return self.value(value, frame)
            case _:
                return Unknown(f"`{type(node).__name__}` is not followed")

    def select(self, base: Value, index: Scalar | None) -> Value:
        """`base[index]` for tuples of known length and for named values."""
        match base:
            case Many(items=items) if isinstance(index, int) and -len(items) <= index < len(items):
                return items[index]
            case Record(fields=fields) if isinstance(index, str) and index in fields:
                return fields[index]
            case Instance() if isinstance(index, str):
                return objects.member(self, base, index)
            case Unknown():
                return base
            case _:
                return Unknown("it is part of something that is not followed")

    def _bind(self, event: Event, frame: Frame, current: Value | None) -> Value:
        frame = frame if event.scope is None else self.frame(event.scope)
        match event.kind:
            case "argument" if event.value is not None:
                value = self.value(event.value, frame)
                scalar = value.value if isinstance(value, Known) else None
                return self.originate(Origin("argument", f"--{event.name}", scalar))
            case "assign" if event.value is not None:
                if not event.path:
                    return self.named(event.value, frame, event.name)
                value = self.value(event.value, frame)
                for index in event.path:
                    value = self.select(value, index)
                return value
            case "augment" if event.value is not None and event.operator is not None:
                return self._augmented(event, event.value, event.operator, frame, current)
            case "import" if isinstance(event.node, ast.Import | ast.ImportFrom):
                return imports.imported(self, event.name, event.node, frame)
            case "define":
                return self._defined(event, frame)
            case "parameter" if isinstance(event.node, Function):
                return self._parameter(event.name, event.node, frame)
            case "loop":
                return Unknown(f"`{event.name}` changes in a loop")
            case "opaque" if isinstance(event.node, Function):
                return calls.surplus(self, event.name, event.node, frame)
            case _:
                return Unknown(f"`{event.name}` is set in a way that is not followed")

    def _augmented(
        self,
        event: Event,
        added: ast.expr,
        op: ast.operator,
        frame: Frame,
        current: Value | None,
    ) -> Value:
        if event.in_loop or current is None:
            return Unknown(f"`{event.name}` changes in a loop")
        value = binary(op, current, self.value(added, frame))
        if isinstance(value, Known):
            place = frame.scope.source.place(event.node)
            return Known(value.value, merge_origins([current, value]), place)
        return value

    def _changed_later(
        self,
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
            if shared and not same_value(current, self._bind(event, frame, current)):
                return Unknown(f"`{event.name}` changes in a loop")
        return current

    def _defined(self, event: Event, frame: Frame) -> Value:
        scope = self.project.scopes.get(event.node)
        if scope is None:
            return Unknown(f"`{event.name}` is set in a way that is not followed")
        if isinstance(event.node, ast.ClassDef):
            return ClassValue(scope, frame)
        return FunctionValue(scope, frame)

    def _parameter(self, name: str, function: Function, frame: Frame) -> Value:
        given = parameters(function)
        if objects.is_method(frame.scope) and given and given[0][0] == name:
            return objects.this_value(self, frame)
        default = dict(given)[name]
        if frame.arguments is not None:
            argument = frame.arguments.get(name)
            if argument is not None:
                return self.named(argument.expression, argument.frame, name)
            return self._default(name, default, frame)
        values: list[Value] = []
        for site in self.call_sites(frame.scope):
            argument = calls.argument_of(self, site, frame.scope, name)
            if argument is not None:
                values.append(self.named(argument.expression, argument.frame, name))
            else:
                values.append(self._default(name, default, frame))
        if not values and frame.scope.name == "forward":
            return Unknown(f"`{name}` is given by calls of the module")
        if not values:
            return self._default(name, default, frame)
        if all(same_value(values[0], value) for value in values):
            return values[0]
        return Unknown(f"`{name}` is given different values by different calls")

    def _default(self, name: str, default: ast.expr | None, frame: Frame) -> Value:
        started = commands.parameter_value(self, frame.scope, name)
        if started is not None:
            return started
        if default is None:
            return Unknown(f"no call that gives `{name}` was found")
        return self.named(default, frame.parent or frame, name)


def _last_binding(events: Sequence[Event], at: ast.expr | None) -> tuple[int, int]:
    """Where the last binding before `at` ends, or the last of all."""
    used = (at.lineno, at.col_offset) if at is not None else None
    ends = [event.end for event in events if used is None or event.end <= used]
    return max(ends, default=(0, 0))
