"""Which names a module, class or function binds, where and under which conditions.

Syntax only: what the bound expressions amount to is `evaluate`'s business. Attributes set on a
name (`cfg.batch = 4`, `self.batch = batch`) are bindings too, under their dotted name.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from infrarsi.reading.attached import attached
from infrarsi.reading.merges import Merge, merges_of
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.walking import children

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
EventKind = Literal[
    "assign", "augment", "loop", "opaque", "import", "define", "parameter", "argument"
]


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition a statement stands under. `test` is None where it is no plain expression."""

    test: ast.expr | None
    holds: bool = True


@dataclass(frozen=True, eq=False)
class Event:
    """One binding of a name.

    `value` is the bound expression and `path` the indices into it where a tuple is unpacked;
    `end` is where the statement ends, from which on the binding counts. With `scope` the value
    is written elsewhere; the kind `argument` is a script argument that sets a constant.
    """

    name: str
    kind: EventKind
    node: ast.AST
    end: tuple[int, int]
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    operator: ast.operator | None = None
    guards: tuple[Guard, ...] = ()
    in_loop: bool = False
    scope: "Scope | None" = None


@dataclass(eq=False, repr=False)
class Scope:
    """A module, class or function with its bindings in order of their place."""

    source: SourceFile
    node: ast.Module | ast.ClassDef | Function
    parent: "Scope | None" = None
    events: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    merges: dict[str, list[Merge]] = field(default_factory=dict[str, list[Merge]])
    returns: list[Event] = field(default_factory=list[Event])
    is_generator: bool = False
    inner: dict[ast.AST, "Scope"] = field(default_factory=dict[ast.AST, "Scope"])

    @property
    def name(self) -> str:
        """The function's or class's name, empty for modules and lambdas."""
        return getattr(self.node, "name", "")

    def around(self) -> Iterator["Scope"]:
        """This scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def module_scope(source: SourceFile) -> Scope:
    """The scope of a whole file with all scopes inside it."""
    scope = Scope(source=source, node=source.tree)
    _Collector(scope).statements(source.tree.body)
    return scope


@attached
def scope_of_file(source: SourceFile) -> Scope:
    """The same, shared by all that read the file: treat it as frozen."""
    return module_scope(source)


def parameters(function: Function) -> list[tuple[str, ast.expr | None]]:
    """Names and defaults of the parameters, `*args` and `**kwargs` left out."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    named = zip(positional, [*missing, *arguments.defaults], strict=True)
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [(argument.arg, default) for argument, default in [*named, *keyword]]


def guards_around(scope: Scope, node: ast.AST) -> list[Guard]:
    """The conditions a node stands under within its scope."""
    guards: list[Guard] = []
    for ancestor in scope.source.ancestors(node):
        if ancestor is scope.node:
            break
        if isinstance(ancestor, ast.If | ast.IfExp) and node is not ancestor.test:
            orelse = ancestor.orelse
            in_else = node in orelse if isinstance(orelse, list) else node is orelse
            guards.append(Guard(ancestor.test, holds=not in_else))
        node = ancestor
    return guards


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` of a chain of attributes on a name, None for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


class _Collector:
    """Walks the statements of one scope, not those of the scopes inside it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.guards: tuple[Guard, ...] = ()
        self.in_loop = False
        self.globals: set[str] = set()

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        self._walrus(node)
        for merge in merges_of(node):
            self.scope.merges.setdefault(merge.target, []).append(merge)
        match node:
            case ast.Assign():
                for target in node.targets:
                    self._assign(target, node.value, node)
            case ast.AnnAssign():
                if node.value is not None or isinstance(self.scope.node, ast.ClassDef):
                    self._assign(node.target, node.value, node)
            case ast.AugAssign():
                self._add(node.target, "augment", node, node.value, operator=node.op)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self._event(name, "import", node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._event(node.name, "define", node)
                self._inner(node)
            case ast.Return():
                self.scope.returns.append(self._make("return", "assign", node, node.value))
            case ast.Global():
                self.globals.update(node.names)
            case _:
                self._block(node)

    def _block(self, node: ast.stmt) -> None:
        match node:
            case ast.If():
                self._under(Guard(node.test), node.body)
                self._under(Guard(node.test, holds=False), node.orelse)
            case ast.For() | ast.AsyncFor():
                self._loop(node.body, (node.target, node))
                self.statements(node.orelse)
            case ast.While():
                self._loop(node.body, None)
                self.statements(node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, item.context_expr, node)
                self.statements(node.body)
            case ast.Try() | ast.TryStar():
                self.statements(node.body)
                for handler in node.handlers:
                    self._under(Guard(None), handler.body)
                self.statements([*node.orelse, *node.finalbody])
            case ast.Match():
                for case in node.cases:
                    self._under(Guard(None), case.body)
            case _:
                pass

    def _under(self, guard: Guard, body: list[ast.stmt]) -> None:
        before = self.guards
        self.guards = (*before, guard)
        self.statements(body)
        self.guards = before

    def _loop(
        self, body: list[ast.stmt], header: tuple[ast.expr, ast.For | ast.AsyncFor] | None
    ) -> None:
        before, self.in_loop = self.in_loop, True
        if header is not None:
            target, node = header
            for name in _targets(target):
                end = (node.iter.end_lineno or 0, node.iter.end_col_offset or 0)
                self._keep(Event(name, "loop", node, end, node.iter, guards=self.guards))
        self.statements(body)
        self.in_loop = before

    def _assign(self, target: ast.expr, value: ast.expr | None, node: ast.stmt) -> None:
        self._unpack(target, value, (), node)

    def _unpack(
        self, target: ast.expr, value: ast.expr | None, path: tuple[int, ...], node: ast.stmt
    ) -> None:
        if not isinstance(target, ast.Tuple | ast.List):
            kind: EventKind = "assign" if value is not None else "opaque"
            self._add(target, kind, node, value, path=path)
            return
        starred = any(isinstance(element, ast.Starred) for element in target.elts)
        for index, element in enumerate(target.elts):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) and not path else []
            if starred:
                self._unpack(getattr(element, "value", element), None, (), node)
            elif len(parts) == len(target.elts):
                self._unpack(element, parts[index], (), node)
            else:
                self._unpack(element, value, (*path, index), node)

    def _add(
        self,
        target: ast.expr,
        kind: EventKind,
        node: ast.stmt,
        value: ast.expr | None,
        path: tuple[int, ...] = (),
        operator: ast.operator | None = None,
    ) -> None:
        name = dotted(target)
        if name is None and kind == "augment":
            name = ast.unparse(target)
        if name is not None:
            self._keep(self._make(name, kind, node, value, path, operator))

    def _event(self, name: str, kind: EventKind, node: ast.stmt) -> None:
        self._keep(self._make(name, kind, node, None))

    def _make(
        self,
        name: str,
        kind: EventKind,
        node: ast.stmt,
        value: ast.expr | None,
        path: tuple[int, ...] = (),
        operator: ast.operator | None = None,
    ) -> Event:
        last = value if isinstance(node, ast.With | ast.AsyncWith) and value else node
        end = (last.end_lineno or 0, last.end_col_offset or 0)
        return Event(name, kind, node, end, value, path, operator, self.guards, self.in_loop)

    def _keep(self, event: Event) -> None:
        scope = self.scope
        if event.name.split(".")[0] in self.globals:
            scope = list(scope.around())[-1]
        scope.events.setdefault(event.name, []).append(event)

    def _walrus(self, statement: ast.stmt) -> None:
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        is_plain = not getattr(statement, "decorator_list", ())
        if is_plain and not any(first <= n <= last for n in self.scope.source.special_lines):
            return
        for node in _own_expressions(statement):
            if isinstance(node, ast.NamedExpr):
                end = (node.end_lineno or 0, node.end_col_offset or 0)
                self._keep(Event(node.target.id, "opaque", statement, end, guards=self.guards))
            elif isinstance(node, ast.Lambda):
                self._inner(node)
            elif isinstance(node, ast.Yield | ast.YieldFrom):
                self.scope.is_generator = True

    def _inner(self, node: Function | ast.ClassDef) -> None:
        scope = Scope(source=self.scope.source, node=node, parent=self.scope)
        self.scope.inner[node] = scope
        if not isinstance(node, ast.ClassDef):
            start = (node.lineno, node.col_offset)
            for name, _ in parameters(node):
                scope.events[name] = [Event(name, "parameter", node, start)]
            for extra in (node.args.vararg, node.args.kwarg):
                if extra is not None:
                    scope.events[extra.arg] = [Event(extra.arg, "opaque", node, start)]
        collector = _Collector(scope)
        if isinstance(node, ast.Lambda):
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            scope.returns.append(Event("return", "assign", node, end, node.body))
        else:
            collector.statements(node.body)


def _targets(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements and lambdas inside it."""
    stack = [child for child in children(statement) if not isinstance(child, ast.stmt)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.excepthandler | ast.match_case):
            continue
        yield node
        if not isinstance(node, ast.Lambda):
            stack.extend(child for child in children(node) if not isinstance(child, ast.stmt))
