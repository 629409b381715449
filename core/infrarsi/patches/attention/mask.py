"""What a mask is, read from code: a step function of column minus row, or unknown.

`torch.tril(torch.ones(T, T))` is 1 where column - row <= 0 and 0 beyond; `== 0`, `~`, `1 - m`,
`m * -1e9`, slices from the start, transposition and `masked_fill` keep it such a function. A
mask is causal when that function says so, however it was spelled.
"""

import math
from dataclasses import replace

import libcst as cst

from infrarsi.patches.attention.scope import Scope, Value, attribute, module_constant, returned
from infrarsi.patches.attention.steps import (
    Index,
    Mask,
    Step,
    as_bool,
    binary,
    choose,
    compare,
    constant,
    inverted,
    transposed,
    triangle,
    unary,
)
from infrarsi.patches.syntax import argument, dotted, method, plain_arguments, receiver

LOWEST_SEEN = -1e4
"""Scores at or below this become zero in the softmax, in fp32 and bf16."""


_COMPARING_METHODS: dict[str, type[cst.BaseCompOp]] = {
    "eq": cst.Equal,
    "ne": cst.NotEqual,
    "lt": cst.LessThan,
    "gt": cst.GreaterThan,
}
_SAME = ("cuda", "cpu", "contiguous", "clone", "detach")
_FLOATS = ("torch.float", "torch.float32", "torch.float16", "torch.bfloat16", "torch.float64")
_INTEGERS = ("torch.int", "torch.int32", "torch.int64", "torch.long", "torch.uint8", "torch.int8")
_CASTS = {
    "bool": "torch.bool",
    "float": "torch.float",
    "double": "torch.float64",
    "int": "torch.int",
    "long": "torch.long",
    "byte": "torch.uint8",
}
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
            return constant(float(node.evaluated_value))
        if isinstance(node, cst.Name | cst.Attribute):
            return self._read_name(node)
        if isinstance(node, cst.UnaryOperation):
            return unary(node.operator, self.read(node.expression))
        if isinstance(node, cst.BinaryOperation):
            return binary(type(node.operator), self.read(node.left), self.read(node.right))
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            compared = node.comparisons[0]
            left, right = self.read(node.left), self.read(compared.comparator)
            return compare(type(compared.operator), left, right)
        if isinstance(node, cst.Subscript):
            return _sliced(self.read(node.value), node)
        return self._read_call(node) if isinstance(node, cst.Call) else None

    def _follow(self, value: Value | None) -> Mask:
        return None if value is None else mask_of(value, self._depth + 1)

    def _read_name(self, node: cst.Name | cst.Attribute) -> Mask:
        name = dotted(node) or ""
        if name in ("True", "False"):
            return as_bool(constant(float(name == "True")))
        full = self._scope.module.names.full(node)
        if full.replace("np.", "numpy.") in _INFINITE:
            return constant(math.inf)
        if isinstance(node, cst.Attribute):
            if node.attr.value in ("T", "mT"):
                return transposed(self.read(node.value), "mT" if node.attr.value == "mT" else "t")
            if node.attr.value == "min" and _is_finfo(node.value):
                return constant(-3e38)
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
            return self._typed(node, constant(float(short == "ones"), _n_leading(given)))
        if short in ("ones_like", "zeros_like"):
            return self._typed(node, constant(float(short == "ones_like"), None))
        if short in ("full", "full_like"):
            fill = argument(node, 1, "fill_value")
            made = self.read(fill) if fill is not None else None
            n_leading = _n_leading(given[:1]) if short == "full" else None
            if not isinstance(made, Step):
                return None
            return self._typed(node, replace(made, n_leading=n_leading))
        if short in ("tensor", "as_tensor") and given:
            return self._typed(node, self.read(given[0]))
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
            return triangle(short, mask, self._diagonal(node, first))
        if short == "where":
            return self._where(node, base, first)
        if short == "masked_fill":
            chosen, fill = argument(node, first, "mask"), argument(node, first + 1, "value")
            if chosen is None or fill is None:
                return None
            is_bool = isinstance(mask, Step) and mask.is_bool
            return None if is_bool else choose(self.read(chosen), self.read(fill), mask)
        if short in _COMPARING_METHODS:
            other = argument(node, first, "other")
            return compare(_COMPARING_METHODS[short], mask, self.read(other)) if other else None
        if short in ("transpose", "swapaxes", "t"):
            dims = [_integer(a) for a in plain_arguments(node)[first:]]
            return transposed(mask, "t" if short == "t" else tuple(dims))
        if short in ("view", "reshape", "unsqueeze", "expand", "expand_as"):
            return _reshaped(short, mask, plain_arguments(node)[first:])
        if short == "logical_not":
            return inverted(mask)
        if short in _CASTS and len(node.args) == first:
            return _cast(mask, _CASTS[short])
        if short in ("to", "type"):
            return self._typed(node, mask)
        return mask if short in _SAME else None

    def _typed(self, node: cst.Call, mask: Mask) -> Mask:
        """The mask in the dtype among the call's arguments, if there is one."""
        for arg in node.args:
            full = self._scope.module.names.full(arg.value)
            if full.startswith("torch."):
                return _cast(mask, full)
            if (arg.keyword is not None and arg.keyword.value == "dtype") or full.endswith(
                ".dtype"
            ):
                return _cast(mask, "torch.float")
        return mask

    def _where(self, node: cst.Call, base: cst.BaseExpression | None, first: int) -> Mask:
        given = plain_arguments(node)
        if first != 1 or len(given) != 3 or base is None:
            return None
        return choose(self.read(given[0]), self.read(given[1]), self.read(given[2]))

    def _diagonal(self, node: cst.Call, first: int) -> int | None:
        given = argument(node, first, "diagonal") or argument(node, None, "k")
        return 0 if given is None else _integer(given)


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
            return constant(float(str(given.evaluated_value)))
        except ValueError:
            return None
    if isinstance(given, cst.Integer | cst.Float):
        return constant(float(given.evaluated_value))
    return None


def _n_leading(given: list[cst.BaseExpression]) -> int | None:
    """Dimensions before the last two of a size given as numbers or as one tuple."""
    if len(given) == 1 and isinstance(given[0], cst.Tuple | cst.List):
        return len(given[0].elements) - 2
    return len(given) - 2 if len(given) > 1 else None


def _cast(mask: Mask, dtype: str) -> Mask:
    """The mask in a dtype; None where that may change its values."""
    if not isinstance(mask, Step):
        return None
    if dtype == "torch.bool":
        return as_bool(mask)
    fits = {mask.low, mask.high} <= {0.0, 1.0}
    if dtype in _FLOATS or (dtype in _INTEGERS and fits):
        return replace(mask, is_bool=False)
    return None


def _reshaped(short: str, mask: Mask, given: list[cst.BaseExpression]) -> Mask:
    if isinstance(mask, Index):
        return _stood_up(short, given)
    if not isinstance(mask, Step):
        return None
    if short == "expand_as":
        return replace(mask, n_leading=None)
    if short != "unsqueeze":
        return _viewed(short, mask, given)
    position = _integer(given[0]) if given else None
    if mask.n_leading is None or position is None or not 0 <= position <= mask.n_leading:
        return None
    return replace(mask, n_leading=mask.n_leading + 1)


def _viewed(short: str, mask: Step, given: list[cst.BaseExpression]) -> Mask:
    """`view(1, 1, T, T)` and `expand(B, H, T, T)`: rows and columns stay the last two."""
    sizes = [_integer(a) for a in given]
    if len(sizes) < 2 or 1 in sizes[-2:] or mask.n_leading is None:
        return None
    if short != "expand" and any(size != 1 for size in sizes[:-2]):
        return None
    return replace(mask, n_leading=len(sizes) - 2)


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
    return replace(mask, n_leading=n_leading)


def _is_new_axis(item: cst.BaseSlice) -> bool:
    return isinstance(item, cst.Index) and dotted(item.value) == "None"


def _from_start(item: cst.Slice) -> bool:
    starts = item.lower is None or _integer(item.lower) == 0
    return starts and item.step is None
