"""What an expression can amount to, and where its literals stand.

A value keeps its origins: the literals and launch choices it was computed from. They tell which
edit changed a derived number, and which one would restore it.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from infrarsi.frozen import Scalar
from infrarsi.knobs import Binding
from infrarsi.place import Place

if TYPE_CHECKING:
    from infrarsi.reading.frames import Frame
    from infrarsi.reading.scopes import Scope


@dataclass(frozen=True)
class Origin:
    """One literal or launch choice. `launcher` is a value the launcher sets, such as world size.

    Where a script argument is given on the launch line, `place` is None.
    """

    carrier: Literal[
        "constant",
        "argument_default",
        "argument",
        "environment",
        "launcher",
        "yaml",
        "toml",
        "json",
    ]
    name: str
    value: Scalar | None
    file: str | None = None
    place: Place | None = None

    @property
    def key(self) -> str:
        """The same for the same carrier, whatever value it holds."""
        at = f"{self.file}:{self.place.line}:{self.place.column}" if self.place else self.name
        return f"{self.carrier} {at}"

    def binding(self, quotient_of: int | None = None) -> Binding | None:
        """How another value would get there; None for what only the launcher sets."""
        if self.carrier == "launcher":
            return None
        return Binding(
            carrier=self.carrier,
            name=self.name,
            file=self.file,
            place=self.place,
            quotient_of=quotient_of,
        )


@dataclass(frozen=True)
class Known:
    """A plain value. `place` is where the expression that gives it stands."""

    value: Scalar | None
    origins: tuple[Origin, ...] = ()
    place: Place | None = None

    def direct(self) -> Origin | None:
        """The one literal this value is, if it is not computed."""
        if len(self.origins) == 1:
            only = self.origins[0]
            is_text = only.carrier == "environment" and str(self.value) == only.value
            return only if is_text or _same(only.value, self.value) else None
        return None


@dataclass(frozen=True)
class Unknown:
    """Why there is no value; one sentence without a full stop."""

    reason: str


@dataclass(frozen=True, eq=False)
class Many:
    """A tuple or list of known length."""

    items: tuple["Value", ...]


@dataclass(frozen=True, eq=False)
class Record:
    """Named values: parsed arguments, a dictionary with literal keys."""

    fields: Mapping[str, "Value"]


@dataclass(frozen=True)
class Symbol:
    """A name of another library, dotted and without aliases: `torch.bfloat16`."""

    name: str


@dataclass(frozen=True, eq=False)
class Made:
    """The result of a call that is not followed: `torch.optim.AdamW(...)` and how it was made."""

    callee: str
    call: ast.Call
    frame: "Frame"


@dataclass(frozen=True, eq=False)
class Bound:
    """An attribute of something made elsewhere: `parser.parse_args`."""

    base: "Value"
    attribute: str


@dataclass(frozen=True)
class Module:
    """A file of the workspace, imported."""

    file: str


@dataclass(frozen=True, eq=False)
class FunctionValue:
    """A function or method of the workspace; `this` is what it is bound to."""

    scope: "Scope"
    closure: "Frame"
    this: "Value | None" = None


@dataclass(frozen=True, eq=False)
class ClassValue:
    """A class of the workspace."""

    scope: "Scope"
    closure: "Frame"


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class of the workspace, with the call that made it where it is known.

    `overlay` holds what was put into it by name afterwards, from a file or the launch line.
    """

    of: ClassValue
    call: ast.Call | None = None
    frame: "Frame | None" = field(default=None)
    overlay: Mapping[str, "Value"] = field(default_factory=dict[str, "Value"])


@dataclass(frozen=True, eq=False)
class Generated:
    """What a call of a generator function gives."""

    frame: "Frame"


Value = (
    Known
    | Unknown
    | Many
    | Record
    | Symbol
    | Made
    | Bound
    | Module
    | FunctionValue
    | ClassValue
    | Instance
    | Generated
)


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are surely the same."""
    match a, b:
        case Known(), Known():
            return _same(a.value, b.value)
        case Many(), Many():
            pairs = zip(a.items, b.items, strict=False)
            return len(a.items) == len(b.items) and all(same_value(x, y) for x, y in pairs)
        case FunctionValue(), FunctionValue():
            return a.scope is b.scope
        case ClassValue(), ClassValue():
            return a.scope is b.scope
        case Instance(), Instance():
            return a.of.scope is b.of.scope and a.call is b.call
        case Made(), Made():
            return a.call is b.call
        case _:
            return a is b or (isinstance(a, Symbol | Module) and a == b)


def merge_origins(values: Iterable[Value]) -> tuple[Origin, ...]:
    """All origins of the values, each once."""
    merged: dict[Origin, None] = {}
    for value in values:
        if isinstance(value, Known):
            merged |= dict.fromkeys(value.origins)
    return tuple(merged)


def _same(a: Scalar | None, b: Scalar | None) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)
