"""`all(... for x in ...)` and `any(...)` over a list that is written out."""

import ast
import copy
from typing import TYPE_CHECKING

from infrarsi.reading.frames import Frame
from infrarsi.reading.operators import is_true
from infrarsi.reading.values import Known, Many, Unknown, Value

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_MAX_ITEMS = 20


def quantified(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    """What `all` or `any` gives for a comprehension; None for any other argument."""
    match node.args:
        case [
            ast.GeneratorExp(
                elt=test, generators=[ast.comprehension(target=ast.Name(id=target), ifs=[]) as over]
            )
        ]:
            items = evaluator.value(over.iter, frame)
        case _:
            return None
    if not isinstance(items, Many) or len(items.items) > _MAX_ITEMS:
        return Unknown("it depends on a list that is not known")
    truths = [_holds(evaluator, test, target, item, frame) for item in items.items]
    decisive = name == "any"
    if decisive in truths:
        return Known(decisive)
    return Unknown("it depends on an unknown condition") if None in truths else Known(not decisive)


def _holds(
    evaluator: "Evaluator", test: ast.expr, target: str, item: Value, frame: Frame
) -> bool | None:
    if not isinstance(item, Known):
        return None
    replaced = _Replace(target, item).visit(copy.deepcopy(test))
    return is_true(evaluator.value(replaced, frame))


class _Replace(ast.NodeTransformer):
    def __init__(self, target: str, item: Known) -> None:
        self.target, self.item = target, item

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The running variable's value in its place."""
        if node.id != self.target:
            return node
        return ast.copy_location(ast.Constant(self.item.value), node)
