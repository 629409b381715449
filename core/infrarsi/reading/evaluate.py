"""What expressions amount to under one launch: lazily, without executing anything.

A small abstract interpreter. Names are resolved where they are bound, parameters at their call
sites, conditions where they can be decided; whatever is not certain is Unknown with a reason.
With `overrides` the same question is answered as if some literals held other values.
"""

import ast
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from infrarsi.frozen import Scalar
from infrarsi.reading import (
    binding,
    calls,
    commands,
    expressions,
    heirs,
    imports,
    mappings,
    objects,
)
from infrarsi.reading.externals import is_builtin, literal
from infrarsi.reading.frames import Frame, frame_of
from infrarsi.reading.half_typed import HALF_TYPED
from infrarsi.reading.memory import NEVER_KEPT, Kept
from infrarsi.reading.operators import is_true, unary
from infrarsi.reading.options import Option, find_options
from infrarsi.reading.parts import CallSite
from infrarsi.reading.project import Project
from infrarsi.reading.scopes import Event, Guard, Scope
from infrarsi.reading.supposed import Supposed, literal_of
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
    same_value,
)

T = TypeVar("T")
_MAX_DEPTH = 60
_MAX_WORK = 200_000


class Evaluator:
    """Evaluates expressions of one project."""

    def __init__(
        self,
        project: Project,
        overrides: Mapping[str, Scalar] | None = None,
        base: "Evaluator | None" = None,
    ) -> None:
        """`overrides` gives values by `Origin.key`; `base` is an evaluator without any."""
        self.project = project
        self.launch = project.launch
        self._overrides = overrides or {}
        self.trace = project.trace
        self.subject: Hashable = ("evaluator", frozenset(self._overrides.items()))
        self.trace.subjects[self.subject] = self
        self.base = base
        self._supposed = Supposed(self, base, self._overrides) if base is not None else None
        self._known: dict[tuple[ast.AST, Frame], Kept] = {}
        self._names: dict[tuple[str, Frame], Kept] = {}
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
        kept = self._of_base(key) or self.trace.recall(home, (self.subject, key))
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
        if self.base is not None and self._supposed is not None:
            kept = self.trace.recall(None, (self.base.subject, question))
            if kept is not None and self._supposed.keeps(kept[1]):
                return kept[0]
        return self.trace.ask(None, (self.subject, question), answer)

    def _of_base(self, key: tuple[ast.AST, Frame]) -> Kept | None:
        """A value that is the same without the overrides."""
        if self.base is None or self._supposed is None:
            return None
        kept = self.base._known.get(key)
        if kept is None or not self._supposed.keeps(kept[1]):
            return None
        self.trace.need(kept[1])
        return kept

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
        key = self.trace.look("project", literal_of, origin.key)
        value = self._overrides.get(key, origin.value)
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
                return self._bound(name, around, at) if number == 0 else self._outer(name, around)
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

    def _bound(self, name: str, frame: Frame, at: ast.expr | None) -> Value:
        """What a name bound in a frame's scope holds where `at` stands in it, or at last."""
        events = frame.scope.events[name]
        since = _last_binding(events, at)
        value = self.fold(events, frame, at)
        return mappings.changed(self, value, name, frame, at, since)

    def _outer(self, name: str, frame: Frame) -> Value:
        """The same at last, found once for all that read the name in scopes inside."""
        known = self._names.get((name, frame))
        if known is None:
            self.trace.begin()
            try:
                value = self._bound(name, frame, None)
            finally:
                needs = self.trace.end()
            known = value, needs
            if self.trace.memory is not None and needs.isdisjoint(NEVER_KEPT):
                self._names[name, frame] = known
        else:
            self.trace.need(known[1])
        return known[0]

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
            new = binding.bind(self, event, frame, current)
            if current is None or holds is True:
                current = new
            elif not same_value(current, new):
                return Unknown(f"`{event.name}` depends on a condition that is not known")
        if current is None:
            return Unknown(f"`{events[0].name}` is not set under this launch")
        return binding.changed_later(self, events, before, frame, current, at)

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


def _last_binding(events: Sequence[Event], at: ast.expr | None) -> tuple[int, int]:
    """Where the last binding before `at` ends, or the last of all."""
    used = (at.lineno, at.col_offset) if at is not None else None
    ends = [event.end for event in events if used is None or event.end <= used]
    return max(ends, default=(0, 0))
