"""Program: one job's sources, followed; what rules ask questions of.

It keeps the evaluator behind a reading, so that a rule can look at calls, their arguments and the
conditions they stand under, on both sides of a change.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from infrarsi.launch import Launch
from infrarsi.place import Place
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.fetching import argument_named
from infrarsi.reading.frames import Frame
from infrarsi.reading.objective import Objective, write_objective
from infrarsi.reading.project import CallSite, Project
from infrarsi.reading.reading import Reading
from infrarsi.reading.scopes import Function, Scope, guards_around
from infrarsi.reading.sources import Sources
from infrarsi.reading.spelling import spell
from infrarsi.reading.training import is_module_class
from infrarsi.reading.values import ClassValue, Instance, Made, Symbol, Value
from infrarsi.reading.workload import StepWork
from infrarsi.reading.written_out import Writer


@dataclass(frozen=True, eq=False)
class Call:
    """One call in a program. `callee` is its name without aliases: `torch.nn.functional.softmax`.

    Where what is called is not followed, `callee` is as it is written. `in_step` says that it
    runs within an optimizer step (model code apart), `in_model` that it is written in a method of
    a torch module.
    """

    program: "Program"
    site: CallSite
    callee: str
    in_step: bool
    in_model: bool

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

    @cached_property
    def receiver(self) -> str:
        """What stands before the last dot, spelled; empty where there is nothing."""
        func = self.site.call.func
        if not isinstance(func, ast.Attribute):
            return ""
        return self.program.spell(func.value, self.site.scope)

    @cached_property
    def signature(self) -> str:
        """The call with everything that can be followed written out; the same for equal calls.

        Names that hold a known value are replaced by it, and imported names by what they stand
        for, so that renaming a constant or moving it to another file changes nothing.
        """
        return self.program.spell(self.site.call, self.site.scope)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The undecided conditions it stands under in its function, outermost last, spelled."""
        found: list[str] = []
        for guard in guards_around(self.site.scope, self.site.call):
            truth = self.program.evaluator.hold([guard], self.frame)
            if truth is True or guard.test is None:
                continue
            text = self.program.spell(guard.test, self.site.scope)
            found.append(text if guard.holds else f"not ({text})")
        return tuple(found)

    @cached_property
    def is_dead(self) -> bool:
        """Whether a condition around it is surely false under this launch."""
        guards = guards_around(self.site.scope, self.site.call)
        return bool(guards) and self.program.evaluator.hold(guards, self.frame) is False


class Program:
    """One job's sources under one launch. Frozen: ask, never change."""

    def __init__(
        self,
        sources: Sources,
        launch: Launch,
        reading: Reading,
        parts: tuple[Evaluator, StepWork] | None,
    ) -> None:
        """`parts` is None where nothing could be followed; then there are no calls."""
        self.sources = sources
        self.launch = launch
        self.reading = reading
        self._parts = parts
        self._is_module: dict[ast.AST, bool] = {}
        self.memo: dict[object, object] = {}
        """What was asked of this program before, for those that ask it often."""

    @property
    def evaluator(self) -> Evaluator:
        """What evaluates expressions; LookupError where nothing could be followed."""
        if self._parts is None:
            raise LookupError("the program could not be followed")
        return self._parts[0]

    @property
    def work(self) -> StepWork:
        """What one step works on; LookupError where nothing could be followed."""
        if self._parts is None:
            raise LookupError("the program could not be followed")
        return self._parts[1]

    @property
    def project(self) -> Project:
        """The reachable files, parsed; LookupError where nothing could be followed."""
        return self.evaluator.project

    @property
    def is_followed(self) -> bool:
        """Whether there is anything to ask."""
        return self._parts is not None

    @cached_property
    def is_half_typed(self) -> bool:
        """Whether some line of it does not parse at the moment."""
        return any(problem.half_typed for problem in self.reading.problems)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """All calls in the reachable files, in order of file and place."""
        if self._parts is None:
            return ()
        return tuple(self._call(site) for site in self.project.calls)

    @cached_property
    def objective(self) -> Objective | None:
        """What a step calls backward on; None where that is not followed."""
        if self._parts is None:
            return None
        return write_objective(Writer(self.evaluator, self.work.flow), self.work)

    def write_out(self, node: ast.expr, scope: Scope) -> ast.expr:
        """An expression with its local names and the functions it calls written out."""
        return Writer(self.evaluator, self.work.flow).write(node, scope)

    @cached_property
    def step_nodes(self) -> tuple[tuple[Scope, ast.AST], ...]:
        """All nodes of a step's region, each with the scope of the block it is found in."""
        training = self.work.training if self._parts is not None else None
        blocks = training.blocks if training is not None else ()
        found: dict[ast.AST, Scope] = {}
        for scope, block in blocks:
            for node in ast.walk(block):
                found.setdefault(node, self.project.scopes.get(block, scope))
        return tuple((scope, node) for node, scope in found.items())

    def named(self, *names: str) -> Iterator[Call]:
        """The calls whose last name, or whole dotted name, is one of these; dead ones apart."""
        for call in self.called(name.rpartition(".")[2] for name in names):
            if (call.name in names or call.callee in names) and not call.is_dead:
                yield call

    def called(self, names: Iterable[str]) -> list[Call]:
        """All calls whose last name is one of these, in order of file and place."""
        index = self._numbers_by_name
        numbers = sorted({number for name in names for number in index.get(name, ())})
        return [self.calls[number] for number in numbers]

    @cached_property
    def _numbers_by_name(self) -> dict[str, list[int]]:
        index: dict[str, list[int]] = {}
        for number, call in enumerate(self.calls):
            index.setdefault(call.name, []).append(number)
        return index

    def spell(self, node: ast.AST, scope: Scope) -> str:
        """An expression with everything that can be followed written out."""
        return spell(self.evaluator, node, scope)

    def module_scopes(self) -> Iterator[Scope]:
        """The methods of the workspace's torch modules."""
        if self._parts is None:
            return
        for scope in self.project.scopes.values():
            if isinstance(scope.node, Function) and self._in_model(scope):
                yield scope

    def _call(self, site: CallSite) -> Call:
        training = self.work.training
        in_step = training is not None and training.holds(site.scope, site.call)
        callee = self._callee(site)
        return Call(self, site, callee, in_step, self._in_model(site.scope))

    def _callee(self, site: CallSite) -> str:
        func = site.call.func
        value = self.evaluator.value(func, self.evaluator.frame(site.scope))
        match value:
            case Symbol(name=name):
                return name
            case _ if isinstance(func, ast.Attribute):
                base = self.evaluator.value(func.value, self.evaluator.frame(site.scope))
                owner = _owner(base)
                return f"{owner}.{func.attr}" if owner else ast.unparse(func)
            case _:
                return ast.unparse(func)

    def _in_model(self, scope: Scope) -> bool:
        for around in scope.around():
            if isinstance(around.node, ast.ClassDef):
                known = self._is_module
                if around.node not in known:
                    closure = self.evaluator.frame(around.parent or around)
                    of = ClassValue(around, closure)
                    known[around.node] = is_module_class(self.evaluator, Instance(of))
                return known[around.node]
        return False


def _owner(base: Value) -> str:
    match base:
        case Made(callee=callee):
            return callee
        case Instance(of=of):
            return of.scope.name
        case _:
            return ""
