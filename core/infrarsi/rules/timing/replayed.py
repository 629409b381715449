"""T311: no step's result is remembered and handed out again.

A store of losses, gradients or hidden states under a key that looks like the input skips the work
whenever the key comes again. Stores that are asked before they are filled are looked for where
steps and forward passes run. Remembering what depends on shapes only, a mask or a table of angles,
is allowed.

Mend it by computing each result.
"""

import ast
import functools
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.scopes import Function, Scope, dotted
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.regions import fetch_scopes, forward_regions, step_regions
from infrarsi.rules.remembered import remembered

CODE = "T311"
_HELD = "the contract holds that each step's result is computed"
_SHAPES = {"shape", "size", "device", "dtype", "ndim", "numel", "dim", "element_size", "is_cuda"}
_EMPTY = {"zeros_like", "empty_like", "ones_like", "full_like", "new_zeros", "new_empty", "len"}
_CACHES = {"cache", "lru_cache", "cached", "memoize", "memory"}
_MAX_DEPTH = 5


def find(change: Change) -> Iterator[Violation]:
    """An error where a backward pass is skipped if its result is known, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    known = {text for text, _, _ in _memories(was)}
    for text, place, certain in _memories(now):
        if text not in known:
            severity: Severity = "error" if certain else "warning"
            yield violation(
                CODE,
                f"`{text[:60]}` may hand out an earlier result; {_HELD}.",
                severity=severity,
                place=place,
            )


@remembered
def _memories(program: Program) -> tuple[tuple[str, Place, bool], ...]:
    """Stores that are asked before they are filled, and whether a backward is skipped by it."""
    if not program.is_followed:
        return ()
    data = {scope.node for scope in fetch_scopes(program)}
    models = {scope.node for scope, _ in forward_regions(program)}
    blocks = [(scope, block) for scope, block in step_regions(program) if block not in data]
    regions = {block: scope for scope, block in (*blocks, *forward_regions(program))}
    found = [
        memory
        for block, scope in regions.items()
        for memory in _of_block(program, block, scope, block in models)
    ]
    return (*found, *_decorated(program, regions))


def _of_block(
    program: Program, block: ast.AST, scope: Scope, is_model: bool
) -> Iterator[tuple[str, Place, bool]]:
    asked = _asked(block)
    if not asked:
        return
    backward = any(
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "backward"
        for node in walk(block)
    )
    results = {site.call for site in (*program.work.flow.forwards, *program.work.flow.losses)}
    inner = program.project.scopes.get(block, scope)
    for node in walk(block):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            name = _store(target)
            if name not in asked or name.endswith(".grad"):
                continue
            if _Dependence(program, results, is_model).of(node.value, inner):
                is_keyed = isinstance(target, ast.Subscript)
                whole = isinstance(block, ast.For | ast.While)
                certain = backward and is_keyed and not is_model and not whole
                yield unparse(target), scope.source.place(node), certain


@functools.lru_cache(maxsize=4096)
def _asked(block: ast.AST) -> set[str]:
    """The names that are asked whether they hold something."""
    found: set[str] = set()
    for node in walk(block):
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[held]):
                found.add(_path(held))
            case ast.Compare(left=held, ops=[ast.Is() | ast.IsNot()]):
                found.add(_path(held))
            case ast.Call(func=ast.Attribute(attr="get" | "setdefault", value=held)):
                found.add(_path(held))
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr"),
                args=[held, ast.Constant(value=str() as name), *_],
            ):
                found.add(f"{_path(held)}.{name}")
            case _:
                pass
    return found - {""}


def _store(target: ast.expr) -> str:
    """What a store is kept in: `self.known` of `self.known[key] = ...`."""
    if isinstance(target, ast.Subscript):
        return _path(target.value)
    return _path(target) if isinstance(target, ast.Attribute) else ""


def _path(node: ast.expr) -> str:
    return dotted(node) or ""


class _Dependence:
    """Whether an expression is computed from a step's numbers, more than from their shapes."""

    def __init__(self, program: Program, results: set[ast.Call], is_model: bool) -> None:
        self._program = program
        self._results = results
        self._is_model = is_model
        self._seen: set[ast.AST] = set()

    def of(self, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
        if node in self._seen or depth > _MAX_DEPTH:
            return False
        self._seen.add(node)
        match node:
            case ast.Attribute(attr=name) if name in _SHAPES:
                return False
            case ast.Attribute(attr="grad"):
                return True
            case ast.Call() if node in self._results:
                return True
            case ast.Call(func=func) if getattr(func, "attr", getattr(func, "id", "")) in (
                _SHAPES | _EMPTY
            ):
                return False
            case ast.Name(id=name):
                return self._name(name, scope, depth)
            case _:
                return any(
                    self.of(child, scope, depth)
                    for child in ast.iter_child_nodes(node)
                    if isinstance(child, ast.expr)
                ) or any(
                    self.of(part.iter, scope, depth) for part in getattr(node, "generators", ())
                )

    def _name(self, name: str, scope: Scope, depth: int) -> bool:
        if name == "self":
            return False
        for around in scope.around():
            events = around.events.get(name, [])
            if not events:
                continue
            if any(event.kind == "parameter" for event in events):
                return self._is_model and isinstance(around.node, Function)
            return any(
                event.value is not None and self.of(event.value, around, depth + 1)
                for event in events
                if event.kind in {"assign", "augment", "loop"}
            )
        return False


def _decorated(
    program: Program, regions: dict[ast.AST, Scope]
) -> Iterator[tuple[str, Place, bool]]:
    """Passes whose results a decorator keeps."""
    results = {site.call for site in (*program.work.flow.forwards, *program.work.flow.losses)}
    for block, scope in regions.items():
        for decorator in getattr(block, "decorator_list", ()):
            named = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = unparse(named).rpartition(".")[2]
            if name not in _CACHES:
                continue
            works = getattr(block, "name", "") == "forward" or any(
                node in results or getattr(getattr(node, "func", None), "attr", "") == "backward"
                for node in walk(block)
            )
            if works:
                text = f"@{name} {getattr(block, 'name', '')}"
                yield text, scope.source.place(decorator), False
