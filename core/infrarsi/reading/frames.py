"""A scope as it is entered: with the arguments of one call, or without a call in mind."""

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infrarsi.reading.attached import attached
from infrarsi.reading.scopes import Function, Scope, parameters
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.values import Instance, Value


@dataclass(frozen=True, eq=False)
class Argument:
    """An argument expression and the frame it is written in."""

    expression: ast.expr
    frame: "Frame"


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """`arguments` is None where no particular call is meant; then call sites are looked up."""

    scope: Scope
    parent: "Frame | None" = None
    arguments: Mapping[str, Argument] | None = None
    this: Value | None = None

    @functools.cached_property
    def sources(self) -> frozenset[SourceFile]:
        """The files it is written in, called from and made in."""
        found = {around.scope.source for around in self.around()}
        for around in self.around():
            for argument in (around.arguments or {}).values():
                found |= argument.frame.sources
            if isinstance(around.this, Instance):
                found |= around.this.of.closure.sources
                found |= around.this.frame.sources if around.this.frame is not None else set()
        return frozenset(found)

    def around(self) -> Iterator["Frame"]:
        """This frame and those around it, innermost first."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent


@attached
def frame_of(scope: Scope) -> Frame:
    """The scope without a particular call in mind; the same object for the same scope."""
    return Frame(scope, frame_of(scope.parent) if scope.parent else None)


def bind_arguments(
    call: ast.Call, function: Function, frame: Frame, *, is_method: bool
) -> dict[str, Argument] | None:
    """The arguments of a call by parameter name; None where `*` or `**` hides them."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    names = [name for name, _ in parameters(function)]
    keyword_only = len(function.args.kwonlyargs)
    positional = names[: len(names) - keyword_only] if keyword_only else names
    positional = positional[1:] if is_method else positional
    bound = {
        name: Argument(argument, frame)
        for name, argument in zip(positional, call.args, strict=False)
    }
    for keyword in call.keywords:
        if keyword.arg is not None:
            bound[keyword.arg] = Argument(keyword.value, frame)
    return bound
