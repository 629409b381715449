"""What one file says by itself, gathered once for each state of its text."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from infrarsi.reading.aliases import rank_alias
from infrarsi.reading.attached import attached
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import SourceFile


@dataclass(frozen=True, eq=False)
class CallSite:
    """One call in the project and the scope it is written in; `number` counts a file's calls."""

    call: ast.Call
    scope: Scope
    number: int = 0

    @functools.cached_property
    def name(self) -> str:
        """The last name of what is called: `step` of `optimizer.step()`."""
        match self.call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
            case _:
                return ""


class Parts:
    """A module's scopes by node, its calls, and what they add to or write on. Frozen."""

    def __init__(self, module: Scope) -> None:
        """Walk the module once."""
        self.module = module
        self.scopes: dict[ast.AST, Scope] = {scope.node: scope for scope in _all_scopes(module)}
        self.calls = tuple(
            CallSite(node, self.scope_of(node), number)
            for number, node in enumerate(module.source.nodes)
            if isinstance(node, ast.Call)
        )
        self._spans = [span(site.call) for site in self.calls]
        self.by_name: dict[str, list[CallSite]] = {}
        for site in self.calls:
            self.by_name.setdefault(site.name, []).append(site)
        self.writes: dict[str, list[tuple[Scope, str]]] = {}
        for scope in self.scopes.values():
            for path in scope.events:
                if "." in path:
                    self.writes.setdefault(path.rpartition(".")[2], []).append((scope, path))
        self.additions = self._additions()
        self.memo: dict[object, Any] = {}
        """What was asked of this text before, for those that ask it often."""

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost scope around a node (for a function: the scope it is defined in)."""
        for ancestor in self.module.source.ancestors(node):
            if ancestor in self.scopes:
                return self.scopes[ancestor]
        return self.module

    def naming(self, canonical: str) -> list[tuple[Scope, str]]:
        """The scopes that bind a spelling of a canonical name to a value, with that spelling."""
        key = ("naming", canonical)
        if key not in self.memo:
            self.memo[key] = [
                (scope, name)
                for scope in self.scopes.values()
                for name, events in scope.events.items()
                if rank_alias(canonical, name) is not None
                and events[0].kind not in {"define", "import"}
            ]
        return self.memo[key]

    def inside(self, block: ast.AST) -> tuple[CallSite, ...]:
        """The calls that stand in a block (a loop, a function), by place."""
        key = ("inside", block)
        if isinstance(block, ast.Module):
            return self.calls
        if key not in self.memo:
            start, end = span(block)
            self.memo[key] = tuple(
                site
                for site, (first, last) in zip(self.calls, self._spans, strict=True)
                if start <= first and last <= end
            )
        return self.memo[key]

    def _additions(self) -> dict[tuple[Scope, str], list[tuple[ast.AST, ast.expr]]]:
        found: dict[tuple[Scope, str], list[tuple[ast.AST, ast.expr]]] = {}
        for method in ("append", "extend", "insert"):
            for site in self.by_name.get(method, []):
                match site.call:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=held)), args=[*_, element]):
                        found.setdefault((site.scope, held), []).append((site.call, element))
                    case _:
                        pass
        return found


@attached
def parts_of(module: Scope) -> Parts:
    """The parts of a module; the same object for the same module."""
    return Parts(module)


@attached
def imports_of(source: SourceFile) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All import statements of a file."""
    return tuple(node for node in source.nodes if isinstance(node, ast.Import | ast.ImportFrom))


def span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a node begins and ends: line and column in bytes."""
    first = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
    return first, (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))


def _all_scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for inner in scope.inner.values():
        yield from _all_scopes(inner)
