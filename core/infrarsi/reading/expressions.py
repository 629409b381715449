"""Kinds of expressions that are made of parts: dictionaries, items, formatted texts, operators."""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading import mappings, paths
from infrarsi.reading.externals import environment
from infrarsi.reading.frames import Frame
from infrarsi.reading.operators import binary, compare, is_true
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known, Many, Record, Symbol, Unknown, Value, merge_origins
from infrarsi.reading.walking import walk

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator


def binary_value(evaluator: "Evaluator", op: ast.operator, left: Value, right: Value) -> Value:
    """Arithmetic, paths joined with `/`, and mappings joined with `|`."""
    if isinstance(op, ast.Div) and isinstance(left, Known) and isinstance(left.value, str):
        return paths.joined(left, right)
    if isinstance(op, ast.BitOr) and isinstance(left, Record):
        return mappings.joined_records([left, mappings.as_record(evaluator, right)])
    return binary(op, left, right)


def comparison(
    evaluator: "Evaluator", left: ast.expr, op: ast.cmpop, right: ast.expr, frame: Frame
) -> Value:
    """`a < b`, `name in os.environ`."""
    a, b = evaluator.value(left, frame), evaluator.value(right, frame)
    if b == Symbol("os.environ") and isinstance(op, ast.In | ast.NotIn):
        is_set = environment(evaluator.launch, a) is not None
        return Known(is_set == isinstance(op, ast.In))
    return compare(op, a, b)


def choice(evaluator: "Evaluator", node: ast.BoolOp, frame: Frame) -> Value:
    """`a or b`, `a and b`: the first operand that decides."""
    decisive = isinstance(node.op, ast.Or)
    unsure = False
    value: Value = Unknown("it depends on an unknown condition")
    for operand in node.values:
        value = evaluator.value(operand, frame)
        truth = is_true(value)
        if truth is decisive:
            return Known(decisive) if unsure else value
        unsure = unsure or truth is None
    return Unknown("it depends on an unknown condition") if unsure else value


def joined_text(evaluator: "Evaluator", parts: list[ast.expr], frame: Frame) -> Value:
    """A formatted text whose parts are all known."""
    texts: list[Value] = []
    for part in parts:
        plain = not isinstance(part, ast.FormattedValue) or part.format_spec is None
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        value = evaluator.value(inner, frame)
        if not plain or not isinstance(value, Known):
            return Unknown("it is a text put together at run time")
        texts.append(value)
    text = "".join(str(value.value) for value in texts if isinstance(value, Known))
    return Known(text, merge_origins(texts))


def dictionary(evaluator: "Evaluator", node: ast.Dict, frame: Frame) -> Value:
    """A dictionary whose keys are written out, `**` of other mappings included."""
    fields: dict[str, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            spread = mappings.as_record(evaluator, evaluator.value(value, frame))
            if not isinstance(spread, Record):
                return spread if isinstance(spread, Unknown) else Unknown("it is not followed")
            fields |= spread.fields
            continue
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return Unknown("it is a dictionary whose keys are not all written out")
        fields[key.value] = evaluator.named(value, frame, key.value)
    return Record(fields)


def subscript(evaluator: "Evaluator", node: ast.Subscript, frame: Frame) -> Value:
    """`base[index]`: an item, a slice of a list, or an environment variable."""
    base, index = evaluator.value(node.value, frame), evaluator.value(node.slice, frame)
    if base == Symbol("os.environ"):
        return environment(evaluator.launch, index) or Unknown(
            f"the environment variable {unparse(node.slice)} is not set by the launch line"
        )
    written = unparse(node) if isinstance(base, Record) else ""
    if written and any(written in around.scope.events for around in frame.around()):
        return Unknown(f"`{written}` is counted on")
    if isinstance(node.slice, ast.Slice) and isinstance(base, Many):
        return _slice(evaluator, base, node.slice, frame)
    return evaluator.select(base, index.value if isinstance(index, Known) else None)


def _slice(evaluator: "Evaluator", base: Many, node: ast.Slice, frame: Frame) -> Value:
    bounds: list[int | None] = []
    for part in (node.lower, node.upper, node.step):
        value = Known(None) if part is None else evaluator.value(part, frame)
        plain = value.value if isinstance(value, Known) else "unknown"
        if (plain == 0 and part is node.step) or not isinstance(plain, int | None):
            return Unknown("it is part of something that is not followed")
        bounds.append(plain)
    return Many(base.items[slice(*bounds)])


def comprehended(node: ast.Name, frame: Frame) -> Value | None:
    """Unknown where the name is the running variable of a comprehension around it."""
    for ancestor in frame.scope.source.ancestors(node):
        if isinstance(ancestor, ast.stmt):
            return None
        if isinstance(
            ancestor, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ) and any(
            isinstance(inner, ast.Name) and inner.id == node.id
            for generator in ancestor.generators
            for inner in walk(generator.target)
        ):
            return Unknown(f"`{node.id}` changes in a loop")
    return None
