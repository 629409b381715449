"""How often rows are fetched for one micro-step: fetches in a loop or comprehension, joined after.

Only what gives whole batches repeats: a comprehension that is stacked has rows for elements. Where
that cannot be told the number of rows is unknown. Which size a fetch has is found elsewhere.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from infrarsi.reading.frames import Frame
from infrarsi.reading.operators import binary
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.values import Known, Unknown, Value
from infrarsi.reading.walking import walk

Comprehension = ast.ListComp | ast.GeneratorExp
Length = Callable[[ast.expr, Frame], Value | None]
_STACKED = {"stack", "tensor", "array", "as_tensor", "asarray", "LongTensor", "pad_sequence"}
_JOINED = {"cat", "concat", "concatenate", "vstack", "view", "reshape", "flatten"}
_LEAVES = ast.Return | ast.Yield | ast.YieldFrom


@dataclass(frozen=True, eq=False)
class Repeat:
    """A loop or comprehension around a fetch, in the frame it is written in."""

    node: ast.AST
    frame: Frame

    def counted(self) -> ast.expr | None:
        """The `n` of `for _ in range(n)`."""
        over = self.node.generators[0] if isinstance(self.node, Comprehension) else self.node
        match over:
            case ast.comprehension(iter=iterated) | ast.For(iter=iterated):
                pass
            case _:
                return None
        match iterated:
            case ast.Call(func=ast.Name(id="range"), args=[count]):
                return count
            case _:
                return None


def repeats_around(node: ast.AST, root: ast.AST, frame: Frame) -> tuple[Repeat, ...]:
    """What repeats a node within `root`, innermost first, where each pass gives a batch."""
    scope = frame.scope
    found: list[Repeat] = []
    inner = node
    for around in scope.source.ancestors(node) if node is not root else ():
        is_element = isinstance(around, Comprehension) and inner is around.elt
        is_kept = isinstance(around, ast.For) and _joins(scope, _appended(around))
        if (is_element and not is_stacked(scope, around)) or is_kept:
            found.append(Repeat(around, frame))
        if around is root:
            break
        inner = around
    return tuple(found)


def is_stacked(scope: Scope, node: ast.AST) -> bool:
    """Whether a comprehension's elements are single rows: they become a dimension of their own."""
    if _called_around(scope, node) & _JOINED:
        return isinstance(node, Comprehension) and _widens(node.elt)
    around = _called_around(scope, node)
    return bool(around & _STACKED) or _uses(scope, _bound(scope, node), _STACKED)


def loops_apart(frame: Frame, node: ast.AST, shared: set[ast.AST]) -> Iterator[Repeat | Unknown]:
    """The loops around a fetch that run within one step but are not the step's own nest.

    A `while` is unknown, but for one that only tries again (`while True: try: ... break`).
    """
    for around in (node, *frame.scope.source.ancestors(node)):
        if around is frame.scope.node or around in shared:
            return
        if isinstance(around, ast.For | ast.AsyncFor):
            yield Repeat(around, frame)
        elif isinstance(around, ast.While) and not _tries(around):
            yield Unknown(f"how often the loop of line {around.lineno} fetches is not known")


def times(repeats: tuple[Repeat | Unknown, ...], length: Length) -> Value:
    """The product of the passes of some repeats."""
    product: Value = Known(1)
    for repeat in repeats:
        count = repeat if isinstance(repeat, Unknown) else _passes(repeat, length)
        product = count if product == Known(1) else binary(ast.Mult(), product, count)
    return product


def counter_is_read(loop: ast.AST) -> bool:
    """Whether the body of a loop reads what it counts with: rows are cut there by it."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    counters = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Name) and node.id in counters
        for statement in loop.body
        for node in walk(statement)
    )


def yields_apart(size: ast.AST, frame: Frame) -> bool:
    """Whether a generator hands rows out in a loop that starts after they were fetched."""
    node, source = frame.scope.node, frame.scope.source
    if not isinstance(node, Function):
        return False
    before = set(source.ancestors(size))
    return any(
        isinstance(around, ast.For) and around not in before
        for inner in walk(node)
        if isinstance(inner, ast.Yield)
        for around in source.ancestors(inner)
        if node in source.ancestors(around)
    )


def _passes(repeat: Repeat, length: Length) -> Value:
    scope = repeat.frame.scope
    if isinstance(repeat.node, Comprehension) and not _is_joined(scope, repeat.node):
        return Unknown("whether a list holds single rows or batches is not known")
    match repeat.node:
        case ast.ListComp(generators=[over]) | ast.GeneratorExp(generators=[over]) if not over.ifs:
            count = length(over.iter, repeat.frame)
        case ast.For(iter=iterated) as loop if not _breaks(loop):
            count = length(iterated, repeat.frame)
        case _:
            count = None
    line = getattr(repeat.node, "lineno", 0)
    return count or Unknown(f"how often the rows of line {line} are fetched is not known")


def _breaks(loop: ast.AST) -> bool:
    return any(isinstance(node, ast.Break | _LEAVES) for node in walk(loop))


def _tries(loop: ast.While) -> bool:
    return any(isinstance(node, ast.Try) for node in walk(loop)) and _breaks(loop)


def _is_joined(scope: Scope, node: ast.AST) -> bool:
    """Whether a comprehension's elements are joined, or taken one by one, as whole batches."""
    name = _bound(scope, node)
    loops = (loop for loop in walk(scope.node) if isinstance(loop, ast.For))
    return (
        bool(_called_around(scope, node) & _JOINED)
        or _uses(scope, name, _JOINED)
        or any(
            inner is node or (isinstance(inner, ast.Name) and inner.id == name)
            for loop in loops
            for inner in walk(loop.iter)
        )
    )


def _widens(element: ast.expr) -> bool:
    """Whether an element gets a dimension for its row: `x.unsqueeze(0)`, `x[None]`."""
    return any(
        _called(node) == "unsqueeze"
        or (
            isinstance(node, ast.Subscript)
            and any(isinstance(i, ast.Constant) and i.value is None for i in walk(node.slice))
        )
        for node in walk(element)
    )


def _joins(scope: Scope, names: set[str]) -> bool:
    return any(_uses(scope, name, _JOINED) for name in names)


def _appended(loop: ast.AST) -> set[str]:
    return {
        node.func.value.id
        for node in walk(loop)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and isinstance(node.func.value, ast.Name)
    }


def _bound(scope: Scope, node: ast.AST) -> str | None:
    """The name a comprehension is assigned to as it is."""
    match scope.source.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return None


def _uses(scope: Scope, name: str | None, callees: set[str]) -> bool:
    """Whether a call of one of the names reads a variable in its arguments."""
    return name is not None and any(
        isinstance(call, ast.Call)
        and _called(call) in callees
        and any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(call))
        for call in walk(scope.node)
    )


def _called_around(scope: Scope, node: ast.AST) -> set[str]:
    """The last names of the calls an expression stands in."""
    around = (_called(ancestor) for ancestor in scope.source.ancestors(node))
    return {name for name in around if name is not None}


def _called(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
        case _:
            return None
