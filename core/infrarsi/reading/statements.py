"""A tree put together of its top-level statements, those of an earlier state among them.

A statement that stands on the same lines with the same text parses to the same nodes, so they are
taken over with all that was found out about their syntax. What statements mean is not shared.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from operator import itemgetter
from typing import Any

from infrarsi.reading.walking import children, keep_walk

Key = tuple[int, str]
Wanted = Callable[[ast.AST], bool]


@dataclass(frozen=True, eq=False)
class Statement:
    """A top-level statement: its nodes by depth, and the node around each but the outermost."""

    node: ast.stmt
    levels: tuple[list[ast.AST], ...]
    parents: Mapping[ast.AST, ast.AST]
    memo: dict[object, Any] = field(default_factory=dict[object, Any])
    """What was asked of its syntax before, for those that ask it often."""

    def wanted(self, wanted: Wanted, kind: type[ast.AST]) -> list[tuple[int, ast.AST]]:
        """The wanted nodes of exactly a kind, with depths; `wanted` looks below a node only."""
        if "<locals>" in wanted.__qualname__:
            return [held for held in self._of_kind(kind) if wanted(held[1])]
        key = (wanted, kind)
        if key not in self.memo:
            self.memo[key] = [held for held in self._of_kind(kind) if wanted(held[1])]
        return self.memo[key]

    def _of_kind(self, kind: type[ast.AST]) -> list[tuple[int, ast.AST]]:
        if "kinds" not in self.memo:
            kinds: dict[type, list[tuple[int, ast.AST]]] = {}
            for depth, level in enumerate(self.levels):
                for node in level:
                    kinds.setdefault(type(node), []).append((depth, node))
            self.memo["kinds"] = kinds
        return self.memo["kinds"].get(kind, [])


@dataclass(frozen=True, eq=False)
class Assembled:
    """A tree's nodes, outer ones first, what is around each, and the statements to take over."""

    nodes: list[ast.AST]
    parents: dict[ast.AST, ast.AST]
    known: dict[Key, Statement]
    statements: tuple[Statement, ...]

    def wanted(self, wanted: Wanted, kind: type[ast.AST]) -> list[ast.AST]:
        """The wanted nodes of exactly a kind, outer ones first."""
        found = [held for each in self.statements for held in each.wanted(wanted, kind)]
        return [node for _, node in sorted(found, key=itemgetter(0))]


def assemble(
    tree: ast.Module, lines: list[str], broken: tuple[int, ...], known: Mapping[Key, Statement]
) -> Assembled:
    """Walk a new tree once, with the statements that are known already in place of equal ones."""
    statements: list[Statement] = []
    keyed: dict[Key, Statement] = {}
    for number, key in enumerate(_keys(tree, lines, broken)):
        found = known.get(key) if key is not None else None
        statement = found or _walked(tree.body[number])
        if key is not None:
            keyed[key] = statement
        tree.body[number] = statement.node
        statements.append(statement)
    nodes: list[ast.AST] = [tree]
    for level in zip_longest(*(statement.levels for statement in statements), fillvalue=()):
        nodes += chain.from_iterable(level)
    parents: dict[ast.AST, ast.AST] = {}
    for statement in statements:
        parents.update(statement.parents)
        parents[statement.node] = tree
    keep_walk(tree, nodes)
    return Assembled(nodes, parents, keyed, tuple(statements))


def _walked(node: ast.stmt) -> Statement:
    parents: dict[ast.AST, ast.AST] = {}
    levels: list[list[ast.AST]] = []
    level: list[ast.AST] = [node]
    while level:
        levels.append(level)
        below: list[ast.AST] = []
        for parent in level:
            for child in children(parent):
                parents[child] = parent
                below.append(child)
        level = below
    keep_walk(node, list(chain.from_iterable(levels)))
    return Statement(node, tuple(levels), parents)


def _keys(tree: ast.Module, lines: list[str], broken: tuple[int, ...]) -> list[Key | None]:
    """Where each statement begins, and its text; None where it shares a line or lacks one."""
    spans = [_span(node) for node in tree.body]
    before = [0, *(last for _, last in spans)]
    after = [*(first for first, _ in spans[1:]), len(lines) + 1]
    return [
        None
        if first <= ended or last >= begins or any(first <= n <= last for n in broken)
        else (first, "\n".join(lines[first - 1 : last]))
        for (first, last), ended, begins in zip(spans, before, after, strict=False)
    ]


def _span(node: ast.stmt) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", ())
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return first, node.end_lineno or node.lineno
