"""`spell`: an expression as text in which everything that can be followed is written out.

Two expressions that amount to the same are mostly spelled the same: known values stand for the
names that hold them, library names stand without aliases. Leaves local names as they are.
"""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading.scopes import Scope, dotted
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known, Symbol

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_MAX_LENGTH = 4000


def spell(evaluator: "Evaluator", node: ast.AST, scope: Scope) -> str:
    """The text of an expression or statement written in `scope`, at most some thousand long."""
    return unparse(_Speller(evaluator, scope).visit(node))[:_MAX_LENGTH]


class _Speller(ast.NodeTransformer):
    """Rebuilds a tree; the one it walks is shared and is never changed."""

    def __init__(self, evaluator: "Evaluator", scope: Scope) -> None:
        self._evaluator = evaluator
        self._frame = evaluator.frame(scope)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        fields = {name: self._field(value) for name, value in ast.iter_fields(node)}
        return ast.copy_location(type(node)(**fields), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._known(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        known = self._known(node) if dotted(node) else None
        return known or self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self._known(node) or self.generic_visit(node)

    def _field(self, value: object) -> object:
        if isinstance(value, ast.AST):
            return self.visit(value)
        if isinstance(value, list):
            return [self._field(item) for item in value]
        return value

    def _known(self, node: ast.expr) -> ast.expr | None:
        if not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            value = self._evaluator.value(node, self._frame)
            if isinstance(value, Known):
                return ast.Constant(value.value)
            if isinstance(value, Symbol):
                return ast.Name(value.name, ast.Load())
        return None
