"""What a mask is, computed on paper: a step function of column minus row.

`torch.tril(torch.ones(T, T))` is 1 where column - row <= 0 and 0 beyond; `== 0`, `~`, `1 - m`,
`m * -1e9`, slices from the start, transposition and `masked_fill` keep it such a function. A
mask is causal when that function says so, however it was spelled. Anything else is unknown.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.attention.scope import Scope, Value, attribute, module_constant, returned
from infrarsi.patches.syntax import argument, dotted, method, plain_arguments, receiver

LOWEST_SEEN = -1e4
"""Scores at or below this become zero in the softmax, in fp32 and bf16."""


@dataclass(frozen=True)
class Step:
    """`low` where column - row <= `edge`, `high` beyond; `n_leading` dimensions before the two."""

    edge: int
    low: float
    high: float
    n_leading: int | None = 0

    @property
    def is_constant(self) -> bool:
        """The same everywhere."""
        return self.low == self.high


@dataclass(frozen=True)
class Index:
    """The row's or the column's number."""

    axis: str


Mask = Step | Index | None

_BINARY: dict[type[cst.BaseBinaryOp], Callable[[float, float], float]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.BitAnd: lambda a, b: float(bool(a) and bool(b)),
    cst.BitOr: lambda a, b: float(bool(a) or bool(b)),
    cst.Power: operator.pow,
}
_COMPARED: dict[type[cst.BaseCompOp], Callable[[float, float], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
_COMPARING_METHODS = {
    "eq": cst.Equal,
    "ne": cst.NotEqual,
    "lt": cst.LessThan,
    "gt": cst.GreaterThan,
}
_SAME = (
    *("to", "float", "int", "long", "byte", "half", "cuda", "cpu", "contiguous", "clone", "detach"),
    *("expand", "expand_as", "type", "type_as"),
)
_INFINITE = ("math.inf", "torch.inf", "numpy.inf")


def mask_of(value: Value, depth: int = 0) -> Mask:
    """The step function an expression stands for, or None."""
    if depth > 30:
        return None
    return _Reader(value.at.scope, value, depth).read(value.node)


def number_of(value: Value) -> float | None:
    """The constant an expression stands for, or None."""
    mask = mask_of(value)
    return mask.low if isinstance(mask, Step) and mask.is_constant else None


class _Reader:
    def __init__(self, scope: Scope, value: Value, depth: int) -> None:
        self._scope, self._at, self._depth = scope, value.at, depth

    def read(self, node: cst.BaseExpression) -> Mask:
        if isinstance(node, cst.Integer | cst.Float):
            return _constant(float(node.evaluated_value))
        if isinstance(node, cst.Name | cst.Attribute):
            return self._read_name(node)
        if isinstance(node, cst.UnaryOperation):
            return _unary(node.operator, self.read(node.expression))
        if isinstance(node, cst.BinaryOperation):
            apply = _BINARY.get(type(node.operator))
            return _pointwise(apply, self.read(node.left), self.read(node.right))
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            compared = node.comparisons[0]
            left, right = self.read(node.left), self.read(compared.comparator)
            return _compare(type(compared.operator), left, right)
        if isinstance(node, cst.Subscript):
            return _sliced(self.read(node.value), node)
        return self._read_call(node) if isinstance(node, cst.Call) else None

    def _follow(self, value: Value | None) -> Mask:
        return None if value is None else mask_of(value, self._depth + 1)

    def _read_name(self, node: cst.Name | cst.Attribute) -> Mask:
        name = dotted(node) or ""
        if name in ("True", "False"):
            return _constant(float(name == "True"))
        full = self._scope.module.names.full(node)
        if full.replace("np.", "numpy.") in _INFINITE:
            return _constant(math.inf)
        if isinstance(node, cst.Attribute):
            if node.attr.value in ("T", "mT"):
                return _transposed(self.read(node.value), "mT" if node.attr.value == "mT" else "t")
            if node.attr.value == "min" and _is_finfo(node.value):
                return _constant(-3e38)
            if name.startswith("self.") and name.count(".") == 1:
                return self._follow(attribute(self._scope, node.attr.value))
            return None
        definition = self._scope.definition(name, self._at)
        if definition is not None:
            return self._follow(definition.value)
        if name in self._scope.parameters:
            return None
        return self._follow(module_constant(self._scope, name))

    def _read_call(self, node: cst.Call) -> Mask:
        full = self._scope.module.names.full(node.func)
        short = full.rpartition(".")[2] or (method(node) or "")
        if dotted(node.func) == "float":
            return _float_of(node)
        if full.startswith("torch."):
            given = plain_arguments(node)
            base = given[0] if given else argument(node, None, "input")
            made = self._made(short, node, given)
            return made if made is not None else self._operated(short, node, base, 1)
        base = receiver(node)
        if base is not None and short.startswith("new_"):
            return self._made(short.removeprefix("new_"), node, plain_arguments(node))
        if base is not None and short == "fill_":
            value = argument(node, 0, "value")
            return self.read(value) if value is not None else None
        if base is not None and dotted(base) != "self":
            return self._operated(short.rstrip("_"), node, base, 0)
        return self._follow(returned(self._scope, node))

    def _made(self, short: str, node: cst.Call, given: list[cst.BaseExpression]) -> Mask:
        if short in ("ones", "zeros"):
            return _constant(float(short == "ones"), _n_leading(given))
        if short in ("ones_like", "zeros_like"):
            return _constant(float(short == "ones_like"), None)
        if short in ("full", "full_like"):
            fill = argument(node, 1, "fill_value")
            made = self.read(fill) if fill is not None else None
            n_leading = _n_leading(given[:1]) if short == "full" else None
            return _constant(made.low, n_leading) if isinstance(made, Step) else None
        if short in ("tensor", "as_tensor") and given:
            return self.read(given[0])
        if short == "arange" and len(given) == 1:
            return Index("column")
        if short == "generate_square_subsequent_mask":
            return Step(0, 0.0, -math.inf)
        return None

    def _operated(
        self, short: str, node: cst.Call, base: cst.BaseExpression | None, first: int
    ) -> Mask:
        """A torch function of `base` whose other arguments begin at `first`, or a method."""
        mask = self.read(base) if base is not None else None
        if short in ("tril", "triu"):
            return _triangle(short, mask, self._diagonal(node, first))
        if short == "where":
            return self._where(node, base, first)
        if short == "masked_fill":
            chosen, fill = argument(node, first, "mask"), argument(node, first + 1, "value")
            if chosen is None or fill is None:
                return None
            return _choose(self.read(chosen), self.read(fill), mask)
        if short in _COMPARING_METHODS:
            other = argument(node, first, "other")
            return _compare(_COMPARING_METHODS[short], mask, self.read(other)) if other else None
        if short in ("transpose", "swapaxes", "t"):
            dims = [_integer(a) for a in plain_arguments(node)[first:]]
            return _transposed(mask, "t" if short == "t" else tuple(dims))
        if short in ("view", "reshape", "unsqueeze"):
            return _reshaped(short, mask, plain_arguments(node)[first:])
        if short in ("bool", "logical_not"):
            return _pointwise(lambda a, _: float(bool(a) == (short == "bool")), mask, _constant(0))
        return mask if short in _SAME else None

    def _where(self, node: cst.Call, base: cst.BaseExpression | None, first: int) -> Mask:
        given = plain_arguments(node)
        if first != 1 or len(given) != 3 or base is None:
            return None
        return _choose(self.read(given[0]), self.read(given[1]), self.read(given[2]))

    def _diagonal(self, node: cst.Call, first: int) -> int | None:
        given = argument(node, first, "diagonal") or argument(node, None, "k")
        return 0 if given is None else _integer(given)


def _constant(value: float, n_leading: int | None = 0) -> Step:
    return Step(0, value, value, n_leading)


def _integer(node: cst.BaseExpression) -> int | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _integer(node.expression)
        return None if inner is None else -inner
    return int(node.value) if isinstance(node, cst.Integer) and node.value.isdigit() else None


def _is_finfo(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and (dotted(node.func) or "").endswith("finfo")


def _float_of(node: cst.Call) -> Mask:
    given = node.args[0].value if node.args else None
    if isinstance(given, cst.SimpleString):
        try:
            return _constant(float(str(given.evaluated_value)))
        except ValueError:
            return None
    if isinstance(given, cst.Integer | cst.Float):
        return _constant(float(given.evaluated_value))
    return None


def _n_leading(given: list[cst.BaseExpression]) -> int | None:
    """Dimensions before the last two of a size given as numbers or as one tuple."""
    if len(given) == 1 and isinstance(given[0], cst.Tuple | cst.List):
        return len(given[0].elements) - 2
    return len(given) - 2 if len(given) > 1 else None


def _leading(a: Step, b: Step) -> int | None:
    if a.n_leading is None or b.n_leading is None:
        return None
    return max(a.n_leading, b.n_leading)


def _pointwise(apply: Callable[[float, float], float] | None, a: Mask, b: Mask) -> Mask:
    if apply is None or not isinstance(a, Step) or not isinstance(b, Step):
        return None
    if not (a.is_constant or b.is_constant) and a.edge != b.edge:
        return None
    edge = b.edge if a.is_constant else a.edge
    try:
        step = Step(edge, apply(a.low, b.low), apply(a.high, b.high), _leading(a, b))
    except (ArithmeticError, ValueError):
        return None
    finite = all(isinstance(v, int | float) and not math.isnan(v) for v in (step.low, step.high))
    return step if finite else None


def _unary(operator_: cst.BaseUnaryOp, mask: Mask) -> Mask:
    if isinstance(operator_, cst.Minus):
        return _pointwise(lambda a, _: -a, mask, _constant(0))
    if isinstance(operator_, cst.BitInvert | cst.Not):
        return _pointwise(lambda a, _: float(not a), mask, _constant(0))
    return None


def _compare(kind: type[cst.BaseCompOp], a: Mask, b: Mask) -> Mask:
    compare = _COMPARED.get(kind)
    if compare is None:
        return None
    if isinstance(a, Index) and isinstance(b, Index):
        return _compare_indexes(kind, a, b)
    return _pointwise(lambda x, y: float(compare(x, y)), a, b)


def _compare_indexes(kind: type[cst.BaseCompOp], a: Index, b: Index) -> Mask:
    if a.axis == b.axis:
        return None
    mirrored: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
        cst.LessThan: cst.GreaterThan,
        cst.GreaterThan: cst.LessThan,
        cst.LessThanEqual: cst.GreaterThanEqual,
        cst.GreaterThanEqual: cst.LessThanEqual,
    }
    kind = kind if a.axis == "column" else mirrored.get(kind, kind)
    column_against_row: dict[type[cst.BaseCompOp], Step] = {
        cst.LessThanEqual: Step(0, 1.0, 0.0),
        cst.LessThan: Step(-1, 1.0, 0.0),
        cst.GreaterThan: Step(0, 0.0, 1.0),
        cst.GreaterThanEqual: Step(-1, 0.0, 1.0),
    }
    return column_against_row.get(kind)


def _triangle(short: str, mask: Mask, diagonal: int | None) -> Mask:
    if not isinstance(mask, Step) or diagonal is None:
        return None
    keep = Step(diagonal, 1.0, 0.0) if short == "tril" else Step(diagonal - 1, 0.0, 1.0)
    return _choose(keep, mask, _constant(0.0, mask.n_leading))


def _choose(chosen: Mask, yes: Mask, no: Mask) -> Mask:
    """`yes` where `chosen` is not zero, `no` elsewhere."""
    if not all(isinstance(m, Step) for m in (chosen, yes, no)):
        return None
    assert isinstance(chosen, Step)
    assert isinstance(yes, Step)
    assert isinstance(no, Step)
    edges = {m.edge for m in (chosen, yes, no) if not m.is_constant}
    if len(edges) > 1:
        return None
    low, high = (yes.low if chosen.low else no.low), (yes.high if chosen.high else no.high)
    leading = [m.n_leading for m in (chosen, yes, no)]
    known = [n for n in leading if n is not None]
    return Step(edges.pop() if edges else 0, low, high, max(known) if len(known) == 3 else None)


def _transposed(mask: Mask, how: "str | tuple[int | None, ...]") -> Mask:
    if not isinstance(mask, Step):
        return None
    plain = mask.n_leading == 0 and how in ("t", (0, 1), (1, 0))
    if not (plain or how in ("mT", (-2, -1), (-1, -2))):
        return None
    return Step(-mask.edge - 1, mask.high, mask.low, mask.n_leading)


def _reshaped(short: str, mask: Mask, given: list[cst.BaseExpression]) -> Mask:
    if isinstance(mask, Index):
        return _stood_up(short, given)
    if not isinstance(mask, Step):
        return None
    if short != "unsqueeze":
        return Step(mask.edge, mask.low, mask.high, _n_leading(given))
    position = _integer(given[0]) if given else None
    if mask.n_leading is None or position is None or not 0 <= position <= mask.n_leading:
        return None
    return Step(mask.edge, mask.low, mask.high, mask.n_leading + 1)


def _stood_up(short: str, given: list[cst.BaseExpression]) -> Mask:
    numbers = [_integer(a) for a in given]
    if short == "unsqueeze":
        if numbers in ([1], [-1]):
            return Index("row")
        return Index("column") if numbers == [0] else None
    if len(numbers) == 2 and numbers[1] == 1:
        return Index("row")
    return Index("column") if len(numbers) == 2 and numbers[0] == 1 else None


def _sliced(mask: Mask, node: cst.Subscript) -> Mask:
    items = [element.slice for element in node.slice]
    if isinstance(mask, Index):
        shape = [_is_new_axis(i) for i in items]
        if sorted(shape) != [False, True]:
            return None
        return Index("column" if shape[0] else "row")
    if not isinstance(mask, Step) or mask.n_leading is None:
        return None
    consumed, n_leading = 0, mask.n_leading
    for position, item in enumerate(items):
        if isinstance(item, cst.Index) and isinstance(item.value, cst.Ellipsis):
            left = sum(not _is_new_axis(i) for i in items[position + 1 :])
            consumed = mask.n_leading + 2 - left
        elif _is_new_axis(item):
            if consumed > mask.n_leading:
                return None
            n_leading += 1
        elif isinstance(item, cst.Slice):
            if consumed >= mask.n_leading and not _from_start(item):
                return None
            consumed += 1
        else:
            if consumed >= mask.n_leading:
                return None
            consumed, n_leading = consumed + 1, n_leading - 1
    return Step(mask.edge, mask.low, mask.high, n_leading)


def _is_new_axis(item: cst.BaseSlice) -> bool:
    return isinstance(item, cst.Index) and dotted(item.value) == "None"


def _from_start(item: cst.Slice) -> bool:
    starts = item.lower is None or _integer(item.lower) == 0
    return starts and item.step is None
