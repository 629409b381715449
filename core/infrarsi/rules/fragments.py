"""Pieces of code of one side that the other side has not: conditions, slices, comparisons.

A piece is known by its text with everything followed written out and local names left open, so
that renaming a variable, hoisting a constant or moving code makes no piece new.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.parts import Parts, parts_of
from infrarsi.reading.scopes import Function, Scope, guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.regions import Region, nodes_in


@dataclass(eq=False)
class Fragment:
    """A piece of code and the scope it is written in."""

    program: Program
    scope: Scope
    node: ast.AST

    @property
    def place(self) -> Place:
        """Where it is written."""
        return self.scope.source.place(self.node)

    @property
    def written(self) -> str:
        """As it is written, apart from layout."""
        return unparse(self.node)

    @property
    def text(self) -> str:
        """Spelled, with local names as they are."""
        return self.program.spell(self.node, self.scope)

    @property
    def key(self) -> str:
        """Spelled, with local names left open."""
        return self.program.ask(self.scope, ("key", self.node), self._key)

    def _key(self) -> str:
        names = {
            inner.id
            for inner in walk(self.node)
            if isinstance(inner, ast.Name) and is_local(inner.id, self.scope)
        }
        if not names:
            return self.text
        one = "|".join(re.escape(name) for name in sorted(names))
        return re.sub(rf"(?<![\w.'\"])(?:{one})\b(?!=)", "_", self.text)


def expanded(node: ast.AST, scope: Scope) -> ast.AST:
    """The expression with names that are bound once replaced by what they are bound to."""
    return _Expander(scope).visit(node)


class _Expander(ast.NodeTransformer):
    """Rebuilds a tree, at most three names deep; the one it walks is shared."""

    def __init__(self, scope: Scope, depth: int = 0) -> None:
        self._scope = scope
        self._depth = depth

    def generic_visit(self, node: ast.AST) -> ast.AST:
        fields = {name: self._field(value) for name, value in ast.iter_fields(node)}
        return ast.copy_location(type(node)(**fields), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        events = next((s.events[node.id] for s in self._scope.around() if node.id in s.events), [])
        bound = events[0].value if len(events) == 1 and events[0].kind == "assign" else None
        if bound is None or events[0].path or self._depth > 2:
            return node
        return _Expander(self._scope, self._depth + 1).visit(bound)

    def _field(self, value: object) -> object:
        if isinstance(value, ast.AST):
            return self.visit(value)
        if isinstance(value, list):
            return [self._field(item) for item in value]
        return value


def is_local(name: str, scope: Scope) -> bool:
    """Whether a name is bound in a function around, or nowhere that is known."""
    for around in scope.around():
        if name in around.events:
            return isinstance(around.node, Function) or any(
                event.in_loop or event.kind == "loop" for event in around.events[name]
            )
    return name not in {"self", "torch", "math"}


def pieces(
    program: Program,
    regions: tuple[Region, ...],
    wanted: Callable[[ast.AST], bool],
    *kinds: type[ast.AST],
) -> list[Fragment]:
    """The wanted nodes of some kinds in some regions, each once."""
    seen: set[ast.AST] = set()
    found: list[Fragment] = []
    for kind in kinds:
        for scope, node in (held for region in regions for held in _held(region, wanted, kind)):
            if node not in seen:
                seen.add(node)
                found.append(Fragment(program, scope, node))
    return found


def matching(program: Program, wanted: Callable[[ast.AST], bool]) -> list[Fragment]:
    """The wanted nodes of all files, in order; `wanted` is a module's own function."""
    found: list[Fragment] = []
    for module in program.project.modules.values():
        memo, key = parts_of(module).memo, ("matching", wanted)
        if key not in memo:
            scope_of = parts_of(module).scope_of
            memo[key] = [(scope_of(n), n) for n in module.source.nodes if wanted(n)]
        found += [Fragment(program, scope, node) for scope, node in memo[key]]
    return found


def _held(region: Region, wanted: Callable[[ast.AST], bool], kind: type[ast.AST]) -> list[Region]:
    """The wanted nodes of a region with their scopes; kept where `wanted` is asked again."""
    parts = parts_of([*region[0].around()][-1])
    if "<locals>" in wanted.__qualname__:
        return _found(parts, region, wanted, kind)
    key = ("pieces", region[1], wanted, kind)
    if key not in parts.memo:
        parts.memo[key] = _found(parts, region, wanted, kind)
    return parts.memo[key]


def _found(
    parts: Parts, region: Region, wanted: Callable[[ast.AST], bool], kind: type[ast.AST]
) -> list[Region]:
    if isinstance(region[1], ast.Module):
        found = parts.module.source.assembled.wanted(wanted, kind)
    else:
        found = [node for _, node in nodes_in((region,), kind) if wanted(node)]
    return [(parts.scope_of(node), node) for node in found]


def fresh(now: Iterable[Fragment], was: Iterable[Fragment]) -> Iterator[Fragment]:
    """Those of `now` that `was` has no equal of, neither as it is written nor spelled."""
    was = list(was)
    same = {fragment.node for fragment in was}
    other = [fragment for fragment in now if fragment.node not in same]
    written = {fragment.written for fragment in was} if other else set[str]()
    unlike = [fragment for fragment in other if fragment.written not in written]
    left = Counter(fragment.key for fragment in was) if unlike else Counter[str]()
    for fragment in unlike:
        if left[fragment.key] > 0:
            left[fragment.key] -= 1
        else:
            yield fragment


def call_key(call: Call) -> str:
    """A key for `difference`: the call's text with local names left open."""
    return Fragment(call.program, call.site.scope, call.site.call).key


def conditions(call: Call) -> list[Fragment]:
    """The tests in its function that decide whether a call happens and are not known."""
    guards = guards_around(call.site.scope, call.site.call)
    return [
        Fragment(call.program, call.site.scope, guard.test)
        for guard in guards
        if guard.test is not None and call.program.evaluator.hold([guard], call.frame) is not True
    ]


def new_conditions(now: Iterable[Call], was: Iterable[Call]) -> Iterator[tuple[Call, Fragment]]:
    """Calls of the same function that stand under a condition none of them stood under before."""
    now, was = list(now), list(was)
    held = [test for call in was for test in conditions(call)]
    known = {test.key for test in held} | {test.written for test in held}
    unconditional = any(not conditions(call) for call in now)
    for call in now:
        for test in conditions(call):
            if not {test.key, test.written} & known and not (unconditional and len(now) > len(was)):
                yield call, test
                break
