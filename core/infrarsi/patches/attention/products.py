"""Batched matrix products, `@`, `torch.matmul` and `einsum` alike, and their transposes."""

from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.attention.scope import Value
from infrarsi.patches.building import with_method
from infrarsi.patches.modules import Module
from infrarsi.patches.syntax import dotted, method, plain_arguments, receiver


@dataclass(frozen=True)
class Product:
    """`left @ right`; with `letters` of an einsum (left, right, out)."""

    left: cst.BaseExpression
    right: cst.BaseExpression
    letters: tuple[str, str, str] | None = None


def product_of(module: Module, node: cst.CSTNode) -> Product | None:
    """The product a node is, or None."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return Product(node.left, node.right)
    if not isinstance(node, cst.Call):
        return None
    full = module.names.full(node.func)
    given = plain_arguments(node)
    if full in ("torch.matmul", "torch.bmm") and len(given) == 2:
        return Product(given[0], given[1])
    base = receiver(node)
    if method(node) in ("matmul", "bmm") and len(given) == 1 and base is not None:
        return Product(base, given[0]) if full not in ("torch.matmul", "torch.bmm") else None
    if full == "torch.einsum" and len(given) == 3:
        letters = _letters(given[0])
        return None if letters is None else Product(given[1], given[2], letters)
    return None


def _letters(node: cst.BaseExpression) -> tuple[str, str, str] | None:
    if not isinstance(node, cst.SimpleString):
        return None
    equation = str(node.evaluated_value).replace(" ", "")
    operands, arrow, out = equation.partition("->")
    terms = operands.split(",")
    if not arrow or len(terms) != 2:
        return None
    terms = [*terms, out]
    if all(term.startswith("...") for term in terms):
        terms = ["." + term[3:] for term in terms]
    if any("..." in term or len(set(term)) != len(term) for term in terms):
        return None
    return terms[0], terms[1], terms[2]


def permuted(node: cst.BaseExpression, have: str, want: str) -> cst.BaseExpression | None:
    """The expression with its dimensions, lettered `have`, in the order `want`."""
    if set(have) != set(want):
        return None
    if have == want:
        return node
    order = [have.index(letter) for letter in want]
    moved = [i for i, source in enumerate(order) if i != source]
    if "." in have:
        size = len(have)
        moved = [i - size for i in moved]
        if len(moved) != 2 or have[0] != want[0]:
            return None
        return with_method(node, f"transpose({moved[0]}, {moved[1]})")
    if len(moved) == 2:
        return with_method(node, f"transpose({moved[0]}, {moved[1]})")
    return with_method(node, f"permute({', '.join(map(str, order))})")


def untransposed(module: Module, value: Value) -> tuple[cst.BaseExpression, bool]:
    """What `value` is the last-two-dimensions transpose of; False where one must be added."""
    node = value.node
    if isinstance(node, cst.Attribute) and node.attr.value == "mT":
        return node.value, True
    if isinstance(node, cst.Call):
        given = plain_arguments(node)
        base = receiver(node)
        full = module.names.full(node.func)
        if full in ("torch.transpose", "torch.swapaxes") and len(given) == 3:
            base, given = given[0], given[1:]
        dims = [_number(a) for a in given]
        name = (dotted(node.func) or method(node) or "").rpartition(".")[2] or method(node)
        swap = name in ("transpose", "swapaxes") and dims in ([-2, -1], [-1, -2], [2, 3], [3, 2])
        if base is not None and (swap or (name == "permute" and dims in ([0, 1, 3, 2], [0, 2, 1]))):
            return base, True
    return node, False


def _number(node: cst.BaseExpression) -> int | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _number(node.expression)
        return None if inner is None else -inner
    return int(node.value) if isinstance(node, cst.Integer) else None
