"""Settings of a library: the arguments of a constructor, a parsed record, and its defaults."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from infrarsi.frozen import Scalar
from infrarsi.reading import objects
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.frames import Frame
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import (
    Bound,
    Instance,
    Known,
    Made,
    Record,
    Unknown,
    Value,
    same_value,
)


@dataclass(frozen=True, eq=False)
class Settings:
    """Named settings held by `held` (None: only defaults), with the library's own defaults.

    A default stands at the call that leaves it, `made`.
    """

    evaluator: Evaluator
    held: Value | None
    defaults: Mapping[str, Scalar | None]
    made: tuple[ast.AST, Scope] | None = None

    def get(self, name: str, position: int | None = None) -> Value | None:
        """The setting as given, else its default; None where neither is known."""
        given = self._given(name, position)
        return self._later(name, given if given is not None else self.default(name))

    def number(self, name: str) -> Value:
        """The same, unknown where there is none, or where it is left to be derived."""
        value = self.get(name)
        if value is None:
            return Unknown(f"`{name}` is not set, and its default is not known")
        if not isinstance(value, Known):
            plain = isinstance(value, Unknown)
            return value if plain else Unknown(f"`{name}` is not written as a plain number")
        if value.value is None or value.value == "auto" or value.value == -1:
            return Unknown(f"`{name}` is left to be derived")
        return value

    def is_on(self, name: str) -> bool | None:
        """Whether a switch is on, None where that is not certain."""
        value = self.get(name)
        if value is None:
            return False
        return bool(value.value) if isinstance(value, Known) else None

    def default(self, name: str) -> Known | None:
        """The library's default, placed at the call that leaves it."""
        if name not in self.defaults:
            return None
        place = self.made[1].source.place(self.made[0]) if self.made is not None else None
        return Known(self.defaults[name], (), place)

    def placed(self, node: ast.AST, scope: Scope) -> "Settings":
        """The same, with defaults placed at another call."""
        return Settings(self.evaluator, self.held, self.defaults, (node, scope))

    def _given(self, name: str, position: int | None) -> Value | None:
        match self.held:
            case Made():
                return argument(self.evaluator, self.held.call, self.held.frame, name, position)
            case Instance():
                found = objects.member(self.evaluator, self.held, name)
                return None if isinstance(found, Bound) else found
            case Record(fields=fields):
                return fields.get(name)
            case Unknown():
                return self.held
            case None:
                return None
            case _:
                return Unknown("what holds the settings is not followed")

    def _later(self, name: str, value: Value | None) -> Value | None:
        """What assignments to an attribute of a constructed object make of it."""
        if not isinstance(self.held, Made):
            return value
        for scope, path in self.evaluator.project.attribute_writes.get(name, []):
            root, *between = path.split(".")[:-1]
            frame = self.evaluator.frame(scope)
            if not between and same_value(self.evaluator.name(root, frame), self.held):
                value = self.evaluator.fold(scope.events[path], frame, None, initial=value)
        return value


def settings_of(
    evaluator: Evaluator, held: Value | None, defaults: Mapping[str, Scalar | None]
) -> Settings:
    """Settings held by a value; defaults stand where it was made."""
    made: tuple[ast.AST, Scope] | None = None
    if isinstance(held, Made | Instance) and held.call is not None and held.frame is not None:
        made = (held.call, held.frame.scope)
    return Settings(evaluator, held, defaults, made)


def argument(
    evaluator: Evaluator, call: ast.Call, frame: Frame, name: str, position: int | None = None
) -> Value | None:
    """A call's argument by keyword, by position, or unpacked from a record; None if not given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return evaluator.named(keyword.value, frame, name)
    if position is not None and position < len(call.args):
        found = call.args[position]
        if not isinstance(found, ast.Starred):
            return evaluator.named(found, frame, name)
    for keyword in call.keywords:
        if keyword.arg is None:
            unpacked = evaluator.value(keyword.value, frame)
            if not isinstance(unpacked, Record):
                return Unknown(f"`{name}` may be given by what is unpacked into the call")
            if name in unpacked.fields:
                return unpacked.fields[name]
    return None


def plain(value: Value | None) -> Scalar | None:
    """The plain value behind a value, None where there is none."""
    return value.value if isinstance(value, Known) else None


def whole(value: Value | None) -> int | None:
    """The value as a number of at least 1."""
    number = plain(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return None
    return number


def clip_of(value: Value | None) -> Value:
    """A norm to clip to; `none` where it is 0 or None."""
    if value is None:
        return Unknown("whether gradients are clipped is not known")
    if isinstance(value, Known) and not value.value:
        return Known("none", value.origins, value.place)
    return value
