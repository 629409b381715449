"""Program: one job's sources, followed; what rules ask questions of.

It keeps the evaluator behind a reading, so that a rule can look at calls, their arguments and the
conditions they stand under, on both sides of a change.
"""

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from infrarsi.contract.contract import Fact
from infrarsi.launch import Launch
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.memory import Trace
from infrarsi.reading.objective import Objective, write_objective
from infrarsi.reading.parts import CallSite, parts_of
from infrarsi.reading.program_calls import Call
from infrarsi.reading.project import Project
from infrarsi.reading.reading import Reading
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.sources import Sources
from infrarsi.reading.spelling import spell
from infrarsi.reading.syntax import unparse
from infrarsi.reading.training import is_module_class
from infrarsi.reading.values import ClassValue, Instance, Made, Symbol, Value
from infrarsi.reading.walking import walk
from infrarsi.reading.workload import StepWork
from infrarsi.reading.written_out import Writer

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Held:
    """What is behind a program, for those that note what they look at."""

    sources: Sources
    reading: Reading
    work: StepWork | None


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
        self.launch = launch
        self.held = _Held(sources, reading, parts[1] if parts is not None else None)
        self._parts = parts
        self._calls: dict[CallSite, Call] = {}
        self.trace = parts[0].trace if parts is not None else Trace()
        self.trace.subjects["program"] = self
        self.memo: dict[object, Any] = {}
        """What was asked of this program before, for those that ask it often."""

    @property
    def reading(self) -> Reading:
        """What was read."""
        return self.trace.look("program", _reading)

    def fact(self, name: str) -> Fact | None:
        """One fact of the reading."""
        return self.trace.look("program", _fact, name)

    @property
    def sources(self) -> Sources:
        """The workspace's texts."""
        return _WatchedSources(self)

    def ask(self, scope: Scope, key: Hashable, answer: Callable[[], T]) -> T:
        """The answer to a question of one scope's file, kept while it holds.

        It must hold on to nothing of this program: texts, numbers, names.
        """
        if self.trace.memory is None:
            return self.once((scope, key), answer)
        return self.trace.ask(scope.source, ("program", key, scope), answer)

    def once(self, key: object, answer: Callable[[], T]) -> T:
        """The answer to a question of this program, found once."""
        return self.trace.once(self.memo, key, answer)

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
        work = self.trace.look("program", _work)
        assert work is not None
        return work

    @property
    def project(self) -> Project:
        """The reachable files, parsed; LookupError where nothing could be followed."""
        return self.evaluator.project

    @property
    def is_followed(self) -> bool:
        """Whether there is anything to ask."""
        return self._parts is not None

    @property
    def is_half_typed(self) -> bool:
        """Whether some line of it does not parse at the moment."""
        return self.trace.look("program", _is_half_typed)

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls in the reachable files, in order of file and place."""
        if self._parts is None:
            return ()
        return self.once("calls", lambda: tuple(map(self._call, self.project.calls)))

    @property
    def objective(self) -> Objective | None:
        """What a step calls backward on; None where that is not followed."""
        if self._parts is None:
            return None
        return self.once("objective", self._objective)

    def by_file(self, answer: Callable[["Program", Scope], Iterable[T]]) -> tuple[T, ...]:
        """What a question gives for each file's module; asked again where its ground moved.

        It must hold on to nothing of this program, as in `ask`.
        """
        modules = self.project.modules.values() if self._parts is not None else ()
        return tuple(
            chain.from_iterable(
                self.ask(module, answer, lambda module=module: tuple(answer(self, module)))
                for module in modules
            )
        )

    def calls_of(self, module: Scope) -> list[Call]:
        """The calls of one file."""
        return [self._call(site) for site in parts_of(module).calls]

    def calls_in(self, regions: Iterable[tuple[Scope, ast.AST]]) -> list[Call]:
        """The calls that stand in some regions, in order of file and place."""
        return [self._call(site) for site in self.project.inside(regions)]

    def write_out(self, node: ast.expr, scope: Scope) -> ast.expr:
        """An expression with its local names and the functions it calls written out."""
        return Writer(self.evaluator, self.work.flow).write(node, scope)

    @property
    def step_nodes(self) -> tuple[tuple[Scope, ast.AST], ...]:
        """All nodes of a step's region, each with the scope of the block it is found in."""
        return self.once("step nodes", self._step_nodes)

    def _objective(self) -> Objective | None:
        return write_objective(Writer(self.evaluator, self.work.flow), self.work)

    def _step_nodes(self) -> tuple[tuple[Scope, ast.AST], ...]:
        training = self.work.training if self._parts is not None else None
        blocks = training.blocks if training is not None else ()
        found: dict[ast.AST, Scope] = {}
        for scope, block in blocks:
            for node in walk(block):
                found.setdefault(node, self.project.scopes.get(block, scope))
        return tuple((scope, node) for node, scope in found.items())

    def named(self, *names: str) -> Iterator[Call]:
        """The calls whose last name, or whole dotted name, is one of these; dead ones apart."""
        for call in self.called(name.rpartition(".")[2] for name in names):
            if (call.name in names or call.callee in names) and not call.is_dead:
                yield call

    def called(self, names: Iterable[str]) -> list[Call]:
        """All calls whose last name is one of these, in order of file and place."""
        if self._parts is None:
            return []
        by_name = self.project.calls_by_name
        lists = [by_name.get(name, []) for name in dict.fromkeys(names)]
        lists = [sites for sites in lists if sites]
        sites = lists[0] if len(lists) == 1 else self.project.in_order(lists)
        return [self._call(site) for site in sites]

    def spell(self, node: ast.AST, scope: Scope) -> str:
        """An expression with everything that can be followed written out."""
        return self.ask(scope, ("spell", node), lambda: spell(self.evaluator, node, scope))

    def module_scopes(self) -> Iterator[Scope]:
        """The methods of the workspace's torch modules."""
        if self._parts is not None:
            yield from self.once("module scopes", self._module_scopes)

    def callee(self, site: CallSite) -> str:
        """The name of what is called, without aliases."""
        return self.ask(site.scope, ("callee", site), lambda: self._callee(site))

    def in_step(self, site: CallSite) -> bool:
        """Whether a call runs within an optimizer step."""
        training = self.work.training
        return training is not None and training.holds(site.scope, site.call)

    def in_model(self, scope: Scope) -> bool:
        """Whether a scope is one of a method of a torch module, or in one."""
        for around in scope.around():
            if isinstance(around.node, ast.ClassDef):
                return self.ask(around, "is module", partial(self._is_module, around))
        return False

    def _call(self, site: CallSite) -> Call:
        call = self._calls.get(site)
        if call is None:
            call = self._calls[site] = Call(self, site)
        return call

    def module_scopes_of(self, module: Scope) -> list[Scope]:
        """The methods of one file's torch modules."""
        scopes = parts_of(module).scopes.values()
        return [s for s in scopes if isinstance(s.node, Function) and self.in_model(s)]

    def _module_scopes(self) -> list[Scope]:
        modules = self.project.modules.values()
        return [scope for module in modules for scope in self.module_scopes_of(module)]

    def _callee(self, site: CallSite) -> str:
        func = site.call.func
        value = self.evaluator.value(func, self.evaluator.frame(site.scope))
        match value:
            case Symbol(name=name):
                return name
            case _ if isinstance(func, ast.Attribute):
                base = self.evaluator.value(func.value, self.evaluator.frame(site.scope))
                owner = _owner(base)
                return f"{owner}.{func.attr}" if owner else unparse(func)
            case _:
                return unparse(func)

    def _is_module(self, scope: Scope) -> bool:
        closure = self.evaluator.frame(scope.parent or scope)
        return is_module_class(self.evaluator, Instance(ClassValue(scope, closure)))


class _WatchedSources:
    """A program's texts; what is asked of them is noted."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def paths(self) -> Iterable[str]:
        return self._program.trace.look("program", _paths)

    def text(self, path: str) -> str | None:
        return self._program.trace.look("program", _text, path)


def _reading(program: Program) -> Reading:
    return program.held.reading


def _fact(program: Program, name: str) -> Fact | None:
    return program.held.reading.fact(name)


def _work(program: Program) -> StepWork | None:
    return program.held.work


def _is_half_typed(program: Program) -> bool:
    return any(problem.half_typed for problem in program.held.reading.problems)


def _paths(program: Program) -> tuple[str, ...]:
    return tuple(program.held.sources.paths())


def _text(program: Program, path: str) -> str | None:
    return program.held.sources.text(path)


def _owner(base: Value) -> str:
    match base:
        case Made(callee=callee):
            return callee
        case Instance(of=of):
            return of.scope.name
        case _:
            return ""
