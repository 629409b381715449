"""Step functions of column minus row, and arithmetic on them.

Leaves out code: what expression stands for which function is `mask`'s to read.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace

import libcst as cst


@dataclass(frozen=True)
class Step:
    """`low` where column - row <= `edge`, `high` beyond.

    `n_leading` counts dimensions before the last two, None where unknown. `is_bool` is surely a
    tensor of bools, whose `~` and `+` are logical.
    """

    edge: int
    low: float
    high: float
    n_leading: int | None = 0
    is_bool: bool = False

    @property
    def is_constant(self) -> bool:
        """The same everywhere."""
        return self.low == self.high


@dataclass(frozen=True)
class Index:
    """The row's or the column's number."""

    axis: str


Mask = Step | Index | None

_ARITHMETIC: dict[type[cst.BaseBinaryOp], Callable[[float, float], float]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.Power: operator.pow,
}
_LOGICAL: dict[type[cst.BaseBinaryOp], Callable[[float, float], float]] = {
    cst.BitAnd: lambda a, b: float(bool(a) and bool(b)),
    cst.BitOr: lambda a, b: float(bool(a) or bool(b)),
}
_COMPARED: dict[type[cst.BaseCompOp], Callable[[float, float], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}


def constant(value: float, n_leading: int | None = 0) -> Step:
    """The same value everywhere."""
    return Step(0, value, value, n_leading)


def _leading(a: Step, b: Step) -> int | None:
    if a.n_leading is None or b.n_leading is None:
        return None
    return max(a.n_leading, b.n_leading)


def pointwise(apply: Callable[[float, float], float] | None, a: Mask, b: Mask) -> Mask:
    """`apply` on each side; None where the edges differ or the result is no number."""
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


def binary(kind: type[cst.BaseBinaryOp], a: Mask, b: Mask) -> Mask:
    """An arithmetic or logical operation; bools are only combined logically."""
    if isinstance(a, Step) and isinstance(b, Step) and a.is_bool and b.is_bool:
        return as_bool(pointwise(_LOGICAL.get(kind), a, b))
    return pointwise(_ARITHMETIC.get(kind), a, b)


def as_bool(mask: Mask) -> Mask:
    """True where the mask is not zero."""
    if not isinstance(mask, Step):
        return None
    low, high = float(bool(mask.low)), float(bool(mask.high))
    return Step(mask.edge, low, high, mask.n_leading, is_bool=True)


def inverted(mask: Mask) -> Mask:
    """Logical not, of anything."""
    return as_bool(pointwise(lambda a, _: float(not a), mask, constant(0)))


def unary(kind: cst.BaseUnaryOp, mask: Mask) -> Mask:
    """Minus, or `~` of bools (of integers it is another thing)."""
    if not isinstance(mask, Step):
        return None
    if isinstance(kind, cst.Minus) and not mask.is_bool:
        return pointwise(lambda a, _: -a, mask, constant(0))
    return inverted(mask) if isinstance(kind, cst.BitInvert) and mask.is_bool else None


def compare(kind: type[cst.BaseCompOp], a: Mask, b: Mask) -> Mask:
    """1 where the comparison holds and 0 elsewhere."""
    holds = _COMPARED.get(kind)
    if holds is None:
        return None
    if isinstance(a, Index) and isinstance(b, Index):
        return _compare_indexes(kind, a, b)
    return as_bool(pointwise(lambda x, y: float(holds(x, y)), a, b))


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
    return as_bool(column_against_row.get(kind))


def triangle(short: str, mask: Mask, diagonal: int | None) -> Mask:
    """`tril` or `triu` of a mask."""
    if not isinstance(mask, Step) or diagonal is None:
        return None
    keep = Step(diagonal, 1.0, 0.0) if short == "tril" else Step(diagonal - 1, 0.0, 1.0)
    zero = Step(0, 0.0, 0.0, mask.n_leading, is_bool=mask.is_bool)
    return choose(keep, mask, zero)


def choose(chosen: Mask, yes: Mask, no: Mask) -> Mask:
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
    n_leading = max(known) if len(known) == 3 else None
    is_bool = yes.is_bool and no.is_bool
    return Step(edges.pop() if edges else 0, low, high, n_leading, is_bool)


def transposed(mask: Mask, how: "str | tuple[int | None, ...]") -> Mask:
    """Rows and columns exchanged, where the last two dimensions are meant."""
    if not isinstance(mask, Step):
        return None
    plain = mask.n_leading == 0 and how in ("t", (0, 1), (1, 0))
    if not (plain or how in ("mT", (-2, -1), (-1, -2))):
        return None
    return replace(mask, edge=-mask.edge - 1, low=mask.high, high=mask.low)
