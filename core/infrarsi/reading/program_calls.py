"""`Call`: one call of a program, as rules look at it; what is not asked for is not found out."""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from infrarsi.place import Place
from infrarsi.reading.fetching import argument_named
from infrarsi.reading.frames import Frame
from infrarsi.reading.parts import CallSite
from infrarsi.reading.scopes import guards_around
from infrarsi.reading.values import Value

if TYPE_CHECKING:
    from infrarsi.reading.program import Program

T = TypeVar("T")


class Call:
    """One call in a program.

    `callee`, `in_step` and `in_model` can be given for a call that was made up.
    """

    def __init__(
        self,
        program: "Program",
        site: CallSite,
        callee: str | None = None,
        in_step: bool | None = None,
        in_model: bool | None = None,
    ) -> None:
        """What is not given is found out when asked for."""
        self.program = program
        self.site = site
        self._given = {"callee": callee, "in step": in_step, "in model": in_model}
        self._known: dict[object, Any] = {}

    @property
    def callee(self) -> str:
        """The name without aliases: `torch.nn.functional.softmax`.

        Where what is called is not followed, it is as it is written.
        """
        return self._once("callee", lambda: self.program.callee(self.site))

    @property
    def in_step(self) -> bool:
        """Whether it runs within an optimizer step, model code apart."""
        return self._once("in step", lambda: self.program.in_step(self.site))

    @property
    def in_model(self) -> bool:
        """Whether it is written in a method of a torch module."""
        return self._once("in model", lambda: self.program.in_model(self.site.scope))

    def _once(self, question: str, answer: Callable[[], T]) -> T:
        known = self._known.get(question)
        if known is not None:
            self.program.trace.need(known[1])
            return known[0]
        given: Any = self._given.get(question)
        if given is not None:
            return given
        return self.program.trace.once(self._known, question, answer)

    @property
    def name(self) -> str:
        """The last name: `softmax`."""
        return self.site.name

    @property
    def place(self) -> Place:
        """Where the call is written."""
        return self.site.scope.source.place(self.site.call)

    @property
    def in_loop(self) -> bool:
        """Whether it stands in a loop of its own function."""
        return any(
            isinstance(node, ast.For | ast.AsyncFor | ast.While)
            for node in self.site.scope.source.ancestors(self.site.call)
        )

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """What an argument amounts to; None where the call leaves it out."""
        node = self.argument_node(name, position)
        if node is None:
            return None
        return self.program.evaluator.named(node, self.frame, name)

    def argument_node(self, name: str, position: int | None = None) -> ast.expr | None:
        """How an argument is written; None where the call leaves it out."""
        return argument_named(self.site.call, name, position)

    @property
    def frame(self) -> Frame:
        """The frame its arguments are evaluated in."""
        return self.program.evaluator.frame(self.site.scope)

    @property
    def receiver(self) -> str:
        """What stands before the last dot, spelled; empty where there is nothing."""
        func = self.site.call.func
        if not isinstance(func, ast.Attribute):
            return ""
        return self.program.spell(func.value, self.site.scope)

    @property
    def signature(self) -> str:
        """The call with everything that can be followed written out; the same for equal calls.

        Names that hold a known value are replaced by it, and imported names by what they stand
        for, so that renaming a constant or moving it to another file changes nothing.
        """
        call, scope = self.site.call, self.site.scope
        return self._once("signature", lambda: self.program.spell(call, scope))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The undecided conditions it stands under in its function, outermost last, spelled."""
        return self.program.ask(self.site.scope, ("conditions", self.site.call), self._conditions)

    @property
    def is_dead(self) -> bool:
        """Whether a condition around it is surely false under this launch."""
        return self._once("is dead", self._asked_dead)

    def _conditions(self) -> tuple[str, ...]:
        found: list[str] = []
        for guard in guards_around(self.site.scope, self.site.call):
            truth = self.program.evaluator.hold([guard], self.frame)
            if truth is True or guard.test is None:
                continue
            text = self.program.spell(guard.test, self.site.scope)
            found.append(text if guard.holds else f"not ({text})")
        return tuple(found)

    def _asked_dead(self) -> bool:
        return self.program.ask(self.site.scope, ("dead", self.site.call), self._is_dead)

    def _is_dead(self) -> bool:
        guards = guards_around(self.site.scope, self.site.call)
        return bool(guards) and self.program.evaluator.hold(guards, self.frame) is False
