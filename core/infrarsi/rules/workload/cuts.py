"""Where an edit takes a part of fetched rows: fewer of them, or shorter ones.

What is cut along the first axis concerns the batch, along the second the length. Shifts by one
(inputs and targets) and parts taken one after another in a loop are no cuts.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.reading import Program
from infrarsi.reading.scopes import dotted
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.fragments import Fragment, fresh, pieces
from infrarsi.rules.regions import Region, data_regions, fetch_scopes, fetched_names, step_regions
from infrarsi.rules.remembered import remembered

_PARTS = {"chunk", "split", "tensor_split"}
_SINGLE = {"__getitem__"}


@dataclass(frozen=True, eq=False)
class Cut:
    """A part taken of rows along an axis; `certain` where the rest is surely dropped."""

    piece: Fragment
    axis: int
    certain: bool

    @property
    def bounds(self) -> frozenset[str]:
        """The local names the part's size depends on."""
        index = self.piece.node.slice if isinstance(self.piece.node, ast.Subscript) else None
        node = index if index is not None else self.piece.node
        return frozenset(inner.id for inner in walk(node) if isinstance(inner, ast.Name))


@remembered
def new_cuts(now: Program, was: Program) -> tuple[Cut, ...]:
    """The cuts of rows that `was` has not."""
    after = _pieces(now)
    rest = {_root(piece.node) for piece in after if not _is_head(piece.node)}
    whole = _shared_out(after)
    return tuple(
        _cut(piece, rest)
        for piece in fresh(after, _pieces(was))
        if not whole & set(_ends(piece.node))
    )


def _shared_out(found: list[Fragment]) -> set[tuple[str, str]]:
    """Where rows are parted and both parts are used: `x[:half]` and `x[half:]`."""
    ends = {end for piece in found for end in _ends(piece.node)}
    return {
        end
        for end in ends
        if (end[0], end[1].replace("up to", "from")) in ends
        and (end[0], end[1].replace("from", "up to")) in ends
    }


def _ends(node: ast.AST) -> Iterator[tuple[str, str]]:
    for cut in (inner for inner in walk(node) if isinstance(inner, ast.Slice)):
        if cut.upper is not None and cut.lower is None and cut.step is None:
            yield _root(node), f"up to {unparse(cut.upper)}"
        elif cut.lower is not None and cut.upper is None and cut.step is None:
            yield _root(node), f"from {unparse(cut.lower)}"


def partial_axis(node: ast.AST) -> int | None:
    """The axis along which a subscript takes a part; None where it takes all or single ones."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    if _is_first_part(node):
        return _dimension(node.value)
    index = node.slice
    elements = index.elts if isinstance(index, ast.Tuple) else [index]
    after_dots = any(isinstance(e, ast.Constant) and e.value is ... for e in elements)
    for axis, element in enumerate(elements):
        if isinstance(element, ast.Slice) and _is_partial(element):
            return -1 if after_dots else axis
    return None


@remembered
def _pieces(program: Program) -> list[Fragment]:
    rows = _row_names(program)
    fetching = set(fetch_scopes(program))
    regions: list[Region] = [*step_regions(program)]
    regions += [(scope, node) for scope, node in data_regions(program) if scope in fetching]
    regions += [(scope, scope.node) for scope in fetching]
    return [
        piece
        for piece in pieces(program, tuple(regions), _takes_part, ast.Subscript, ast.Call)
        if (piece.scope in fetching or _root(piece.node) in rows) and not _of_window(piece)
    ]


@remembered
def _row_names(program: Program) -> frozenset[str]:
    given = {
        dotted(argument) or ""
        for site in (*program.work.flow.forwards, *program.work.flow.losses)
        for argument in (*site.call.args, *(keyword.value for keyword in site.call.keywords))
        if isinstance(argument, ast.Name | ast.Attribute)
    }
    return fetched_names(program) | {name for name in given if name}


def _takes_part(node: ast.AST) -> bool:
    if partial_axis(node) is not None:
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "narrow"
    )


def _is_head(node: ast.AST) -> bool:
    """Whether the part is the first one, up to a bound, or every n-th."""
    slices = [inner for inner in walk(node) if isinstance(inner, ast.Slice)]
    return bool(slices) and all(cut.lower is None for cut in slices)


def _cut(piece: Fragment, rest: set[str]) -> Cut:
    axis = partial_axis(piece.node)
    if axis is None and isinstance(piece.node, ast.Call):
        axis = _dimension(piece.node)
    axis = 1 if axis == -1 else axis or 0
    if piece.scope.name in _SINGLE:
        axis = 1
    return Cut(piece, axis, _rebinds(piece) and _root(piece.node) not in rest)


def _is_partial(cut: ast.Slice) -> bool:
    if cut.step is not None and not _is_number(cut.step, 1):
        return True
    if cut.lower is not None and cut.upper is not None:
        return False
    if cut.lower is None and cut.upper is None:
        return False
    return not _is_number(cut.upper, -1) and not _is_number(cut.lower, 1)


def _is_number(node: ast.expr | None, number: int) -> bool:
    match node:
        case ast.Constant(value=value):
            return value == number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return -number == value
        case _:
            return False


def _is_first_part(node: ast.Subscript) -> bool:
    """`x.chunk(2)[0]`: one part of several."""
    base = node.value
    return (
        isinstance(base, ast.Call)
        and isinstance(base.func, ast.Attribute)
        and base.func.attr in _PARTS
        and isinstance(node.slice, ast.Constant)
    )


def _dimension(node: ast.expr) -> int:
    if isinstance(node, ast.Call):
        named = [keyword.value for keyword in node.keywords if keyword.arg == "dim"]
        is_narrow = isinstance(node.func, ast.Attribute) and node.func.attr == "narrow"
        listed = node.args[:1] if is_narrow else node.args[1:2]
        for given in [*named, *listed]:
            if isinstance(given, ast.Constant) and isinstance(given.value, int):
                return given.value
    return 0


def _root(node: ast.AST) -> str:
    while True:
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner):
                if isinstance(node, ast.Attribute) and (path := dotted(node)):
                    return path
                node = inner
            case ast.Call(func=inner):
                node = inner.value if isinstance(inner, ast.Attribute) else inner
            case ast.Name(id=name):
                return name
            case _:
                return ""


def _of_window(piece: Fragment) -> bool:
    """Whether a loop around takes part after part: its own variable is in the bounds."""
    if not isinstance(piece.node, ast.Subscript) or not _has_both_bounds(piece.node):
        return False
    inside = {node.id for node in walk(piece.node) if isinstance(node, ast.Name)}
    for ancestor in piece.scope.source.ancestors(piece.node):
        if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        match ancestor:
            case ast.For(target=ast.Name(id=counter)) if counter in inside:
                return True
            case _:
                pass
    return False


def _has_both_bounds(node: ast.Subscript) -> bool:
    return any(
        isinstance(inner, ast.Slice) and inner.lower is not None and inner.upper is not None
        for inner in walk(node.slice)
    )


def _rebinds(piece: Fragment) -> bool:
    """Whether the part takes the place of the whole: `x = x[:k]`, `x, y = x[:k], y[:k]`."""
    statement = piece.scope.source.statement(piece.node)
    if not isinstance(statement, ast.Assign):
        return False
    targets = {name for target in statement.targets for name in _target_names(target)}
    return _root(piece.node) in targets


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _target_names(element)
    else:
        yield dotted(target) or _root(target)
