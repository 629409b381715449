"""Arithmetic, comparison and choice over values, as Python does them, within safe bounds."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from infrarsi.reading.values import (
    Known,
    Many,
    Record,
    Symbol,
    Unknown,
    Value,
    merge_origins,
    same_value,
)

_MAX_BITS = 128

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
}


def binary(kind: ast.operator, left: Value, right: Value) -> Value:
    """`left kind right` of numbers, or of two texts joined; anything else is unknown."""
    if isinstance(left, Unknown):
        return left
    if isinstance(right, Unknown):
        return right
    if not isinstance(left, Known) or not isinstance(right, Known):
        return Unknown("it is computed from something that is no plain number")
    a, b = left.value, right.value
    texts = isinstance(a, str) and isinstance(b, str) and isinstance(kind, ast.Add)
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    apply = _BINARY.get(type(kind))
    if apply is None or not (texts or numbers):
        return Unknown("it is computed in a way that is not followed")
    if isinstance(kind, ast.Pow | ast.LShift) and not _small(b):
        return Unknown("it is a number out of all bounds")
    return computed(lambda: apply(a, b), left, right)


def computed(result: Callable[[], Any], *inputs: Value) -> Value:
    """The scalar that `result` gives, with the origins of its inputs."""
    try:
        value = result()
    except (ArithmeticError, TypeError, ValueError) as error:
        return Unknown(f"computing it fails ({type(error).__name__})")
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return Unknown("it is a number out of all bounds")
    if not isinstance(value, bool | int | float | str | None):
        return Unknown("it is no plain number or text")
    return Known(value, merge_origins(inputs))


def unary(kind: ast.unaryop, operand: Value) -> Value:
    """`-x`, `+x`, `not x`."""
    if isinstance(kind, ast.Not):
        truth = is_true(operand)
        return (
            Unknown("it depends on an unknown condition")
            if truth is None
            else Known(not truth, merge_origins([operand]))
        )
    if not isinstance(operand, Known) or not isinstance(operand.value, int | float):
        return operand if isinstance(operand, Unknown) else Unknown("it is no plain number")
    sign = -1 if isinstance(kind, ast.USub) else 1
    number = operand.value
    return computed(lambda: sign * number, operand)


def compare(kind: ast.cmpop, left: Value, right: Value) -> Value:
    """`left kind right` as a Known truth where it is certain."""
    if isinstance(kind, ast.In | ast.NotIn):
        inside = _contains(right, left)
        if inside is None:
            return Unknown("it depends on an unknown condition")
        return Known(inside != isinstance(kind, ast.NotIn), merge_origins([left]))
    apply = _COMPARE.get(type(kind))
    if isinstance(left, Known) and isinstance(right, Known) and apply is not None:
        a, b = left.value, right.value
        return computed(lambda: bool(apply(a, b)), left, right)
    plain = isinstance(left, Known | Symbol) and isinstance(right, Known | Symbol)
    if plain and isinstance(kind, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        same = same_value(left, right)
        return Known(same == isinstance(kind, ast.Eq | ast.Is), merge_origins([left, right]))
    return Unknown("it depends on an unknown condition")


def is_true(value: Value) -> bool | None:
    """The truth of a value, None where it is not certain."""
    match value:
        case Known():
            return bool(value.value)
        case Many():
            return bool(value.items)
        case Unknown() | Symbol():
            return None
        case Record():
            return bool(value.fields)
        case _:
            return None


def _contains(container: Value, item: Value) -> bool | None:
    if not isinstance(item, Known):
        return None
    match container:
        case Many(items=items):
            if any(same_value(item, candidate) for candidate in items):
                return True
            return False if all(isinstance(candidate, Known) for candidate in items) else None
        case Record(fields=fields):
            return item.value in fields
        case Known(value=str(text)) if isinstance(item.value, str):
            return item.value in text
        case _:
            return None


def _small(number: object) -> bool:
    return isinstance(number, int | float) and abs(number) <= _MAX_BITS
