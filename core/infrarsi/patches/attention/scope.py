"""Which assignment a name's value comes from, within one function.

Straight-line code is followed; what a branch or loop may have bound is opaque. Attributes of
`self` and module constants are looked up where they are bound exactly once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from infrarsi.patches.modules import Module
from infrarsi.patches.syntax import calls, children, dotted, method, receiver, stores, walk


@dataclass(frozen=True, eq=False)
class Entry:
    """One small statement, or the header of a compound one, and where it stands."""

    scope: "Scope"
    statement: cst.CSTNode
    levels: tuple[tuple[Sequence[cst.CSTNode], int], ...]


@dataclass(frozen=True)
class Value:
    """An expression, to be understood as of just before `at`."""

    node: cst.BaseExpression
    at: Entry


@dataclass(frozen=True)
class Definition:
    """The statement a name's value comes from; `value` is None where it is opaque."""

    entry: Entry
    value: Value | None


@dataclass(eq=False)
class Scope:
    """A function (or a whole module) with its statements in order."""

    module: Module
    owner: cst.ClassDef | None
    node: cst.FunctionDef | cst.Module
    _entries: dict[cst.CSTNode, Entry] = field(default_factory=dict)
    _changed: dict[cst.CSTNode, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index every node below by the statement it stands in."""
        body = self.node.body
        self._index(body.body if isinstance(body, cst.BaseSuite) else body, ())

    @property
    def parameters(self) -> dict[str, cst.Param]:
        """The function's parameters by name."""
        if isinstance(self.node, cst.Module):
            return {}
        return {p.name.value: p for p in walk(self.node.params) if isinstance(p, cst.Param)}

    def entry(self, node: cst.CSTNode) -> Entry:
        """The statement that `node` stands in."""
        return self._entries[node]

    def definition(self, name: str, at: Entry) -> Definition | None:
        """Where `name` got the value it has just before `at`; None where nothing here binds it."""
        for statements, index in reversed(at.levels):
            for statement in reversed(statements[:index]):
                for part in reversed(_parts(statement)):
                    if name in self._changed_by(part):
                        entry = self._entries[part]
                        return Definition(entry, _value(part, name, entry))
        return None

    def _changed_by(self, part: cst.CSTNode) -> set[str]:
        """Names a statement binds or whose tensor it changes in place."""
        if part not in self._changed:
            self._changed[part] = stores(part) | _mutated(part)
        return self._changed[part]

    def _index(
        self,
        statements: Sequence[cst.CSTNode],
        outer: tuple[tuple[Sequence[cst.CSTNode], int], ...],
    ) -> None:
        for index, statement in enumerate(statements):
            levels = (*outer, (statements, index))
            if isinstance(statement, cst.SimpleStatementLine):
                self._index(statement.body, levels)
                continue
            entry = Entry(self, statement, levels)
            self._claim(statement, entry)
            if not isinstance(statement, cst.FunctionDef | cst.ClassDef):
                for block in _own_blocks(statement):
                    self._index(block.body, levels)

    def _claim(self, node: cst.CSTNode, entry: Entry) -> None:
        for below in walk(node):
            self._entries[below] = entry


def attribute(scope: Scope, name: str) -> Value | None:
    """What `self.<name>` holds, where the class binds it once (or registers it as a buffer)."""
    found = list(_attribute_values(scope, name)) if scope.owner is not None else []
    return found[0] if len(found) == 1 else None


def module_constant(scope: Scope, name: str) -> Value | None:
    """What a name bound once at the top of the file holds."""
    top = Scope(scope.module, None, scope.module.tree)
    binding = [
        part
        for line in scope.module.tree.body
        if not isinstance(line, cst.FunctionDef | cst.ClassDef)
        for part in _parts(line)
        if name in stores(part)
    ]
    if len(binding) != 1 or not isinstance(binding[0], cst.Assign | cst.AnnAssign):
        return None
    value = assigned_value(binding[0], name)
    return None if value is None else Value(value, top.entry(binding[0]))


def returned(scope: Scope, call: cst.Call) -> Value | None:
    """What a function or method of this file gives back, where it ends in its only return."""
    name = dotted(call.func) or ""
    owner = scope.owner if name.startswith("self.") else None
    base = owner.body if owner is not None else scope.module.tree
    for node in walk(base):
        if not isinstance(node, cst.FunctionDef) or node.name.value != name.removeprefix("self."):
            continue
        returns = [n for n in walk(node.body) if isinstance(n, cst.Return)]
        if len(returns) == 1 and returns[0].value is not None:
            return Value(returns[0].value, Scope(scope.module, owner, node).entry(returns[0]))
    return None


def functions(module: Module) -> Iterator[Scope]:
    """Every function of the file, with the class it is a method of."""

    def visit(node: cst.CSTNode, owner: cst.ClassDef | None) -> Iterator[Scope]:
        if isinstance(node, cst.FunctionDef):
            yield Scope(module, owner, node)
        if isinstance(node, cst.ClassDef):
            owner = node
        for child in children(node):
            yield from visit(child, owner)

    return visit(module.tree, None)


def _attribute_values(scope: Scope, name: str) -> Iterator[Value | None]:
    """Each binding of `self.<name>` in the class; None for one that is not plain to see."""
    assert scope.owner is not None
    own = f"self.{name}"
    for node in scope.owner.body.body:
        if not isinstance(node, cst.FunctionDef):
            continue
        inner = Scope(scope.module, scope.owner, node)
        for part in walk(node.body):
            if isinstance(part, cst.Assign | cst.AnnAssign | cst.AugAssign):
                if own in _targets(part):
                    value = None if isinstance(part, cst.AugAssign) else assigned_value(part, own)
                    yield None if value is None else Value(value, inner.entry(part))
            elif isinstance(part, cst.Call) and dotted(part.func) == "self.register_buffer":
                given = [a.value for a in part.args]
                if len(given) > 1 and _is_string(given[0], name):
                    yield Value(given[1], inner.entry(part))


def _targets(part: cst.Assign | cst.AnnAssign | cst.AugAssign) -> set[str | None]:
    targets = [t.target for t in part.targets] if isinstance(part, cst.Assign) else [part.target]
    return {dotted(below) for target in targets for below in walk(target)}


def _is_string(node: cst.BaseExpression, text: str) -> bool:
    return isinstance(node, cst.SimpleString) and node.evaluated_value == text


def assigned_value(part: cst.Assign | cst.AnnAssign, name: str) -> cst.BaseExpression | None:
    """What the statement binds that name to, also in `a, b = x, y`; None if not plain to see."""
    if isinstance(part, cst.AnnAssign):
        return part.value if dotted(part.target) == name else None
    found = [
        value
        for target in part.targets
        for left, value in _paired(target.target, part.value)
        if left == name
    ]
    return found[0] if len(found) == 1 else None


def _paired(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[str | None, cst.BaseExpression]]:
    if isinstance(target, cst.Tuple | cst.List) and isinstance(value, cst.Tuple | cst.List):
        for left, right in zip(target.elements, value.elements, strict=False):
            yield from _paired(left.value, right.value)
    else:
        yield dotted(target), value


def _value(part: cst.CSTNode, name: str, entry: Entry) -> Value | None:
    """The expression `name` is bound to by a small statement."""
    if isinstance(part, cst.Assign | cst.AnnAssign):
        value = assigned_value(part, name)
        return None if value is None else Value(value, entry)
    if isinstance(part, cst.AugAssign) and dotted(part.target) == name:
        operator = _OPERATORS.get(type(part.operator))
        if operator is not None:
            target = cst.Name(name)
            return Value(
                cst.BinaryOperation(left=target, operator=operator(), right=part.value), entry
            )
    if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call):
        in_place = (method(part.value) or "").endswith("_") and dotted(receiver(part.value)) == name
        return Value(part.value, entry) if in_place else None
    return None


_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
}


def _mutated(part: cst.CSTNode) -> set[str]:
    """Names whose tensor a statement changes in place."""
    names: set[str | None] = set()
    for call in calls(part):
        if (method(call) or "").endswith("_") and not (method(call) or "").endswith("__"):
            names.add(dotted(receiver(call)))
    for node in walk(part):
        if isinstance(node, cst.AssignTarget | cst.AugAssign):
            target = node.target
            if isinstance(target, cst.Subscript):
                names.add(dotted(target.value))
    return {n for n in names if n is not None}


def _parts(statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    if isinstance(statement, cst.SimpleStatementLine):
        return statement.body
    return (statement,)


def _own_blocks(statement: cst.CSTNode) -> Iterator[cst.IndentedBlock]:
    """The blocks directly under a compound statement, `else` and handlers included."""
    for child in children(statement):
        if isinstance(child, cst.IndentedBlock):
            yield child
        elif isinstance(child, cst.Else | cst.If | cst.ExceptHandler | cst.Finally):
            yield from _own_blocks(child)
