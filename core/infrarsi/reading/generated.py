"""Micro-steps that a generator of the workspace hands out: how many, and how many rows each."""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from infrarsi.reading.frames import Frame
from infrarsi.reading.operators import binary
from infrarsi.reading.values import Generated, Known, Value
from infrarsi.reading.walking import walk

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

Length = Callable[[ast.expr, Frame], Value | None]


def yields_count(generated: Generated, length: Length) -> Value | None:
    """How often a generator yields; None where it has no single `yield` under plain loops.

    `length` tells how often a loop over an expression runs.
    """
    frame = generated.frame
    node = frame.scope.node
    found = [inner for inner in walk(node) if isinstance(inner, ast.Yield | ast.YieldFrom)]
    if len(found) != 1 or isinstance(found[0], ast.YieldFrom):
        return None
    product: Value = Known(1)
    for ancestor in frame.scope.source.ancestors(found[0]):
        if ancestor is node:
            return product
        if isinstance(ancestor, ast.For):
            runs = length(ancestor.iter, frame)
            if runs is None:
                return None
            product = runs if product == Known(1) else binary(ast.Mult(), product, runs)
        elif isinstance(ancestor, ast.If | ast.While | ast.Try | ast.FunctionDef | ast.AsyncFor):
            return None
    return None


def sliced_part(evaluator: "Evaluator", generated: Generated) -> Value | None:
    """The `m` of `rows[i * m : (i + 1) * m]` in a generator, None where there is none."""
    frame = generated.frame
    for node in walk(frame.scope.node):
        match node:
            case ast.Slice(
                lower=ast.BinOp(left=ast.Name(id=start), op=ast.Mult(), right=part),
                upper=ast.BinOp(
                    left=ast.BinOp(
                        left=ast.Name(id=stop), op=ast.Add(), right=ast.Constant(value=1)
                    ),
                    op=ast.Mult(),
                    right=same,
                ),
                step=None,
            ) if start == stop and ast.dump(part) == ast.dump(same):
                return evaluator.named(part, frame, "micro_batch")
            case _:
                pass
    return None


def takes_next(fetch: ast.expr) -> bool:
    """Whether a fetch takes one part of a generator: `next(stream)`."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"
        for node in walk(fetch)
    )
