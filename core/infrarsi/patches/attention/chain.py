"""From `weights @ v` back to `q @ k^T`: one attention, put together from its parts.

The chain is followed through names and statements. What is met that attention does not have
refuses it, with the reason. Leaves out writing the replacement (see `recipes.sdpa`).
"""

from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.attention.products import Product, permuted, product_of
from infrarsi.patches.attention.refusal import NotAttention
from infrarsi.patches.attention.scope import Entry, Value
from infrarsi.patches.attention.scores import Scores
from infrarsi.patches.attention.weights import Weights

Letters = tuple[str, str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Attention:
    """One attention.

    `product` is the expression to replace and `left` its weights; `value` is laid out like the
    queries, and `layout` (have, want) says how the result must be laid out, where it differs.
    """

    product: cst.BaseExpression
    left: cst.BaseExpression
    at: Entry
    scores: Scores
    value: cst.BaseExpression
    layout: tuple[str, str] | None
    dropout: str | None
    chain: tuple[Entry, ...]


def attention_in(node: cst.BaseExpression, at: Entry) -> Attention | str | None:
    """The attention whose last product is `node`; a reason where it is only alike; else None."""
    product = product_of(at.scope.module, node)
    if product is None:
        return None
    try:
        for left, right, letters in _orders(product):
            weights = Weights(Value(left, at))
            if weights.softmax is not None:
                return _attention(node, at, left, right, letters, weights)
    except NotAttention as refusal:
        return str(refusal)
    return None


def _attention(
    node: cst.BaseExpression,
    at: Entry,
    left: cst.BaseExpression,
    right: cst.BaseExpression,
    letters: Letters | None,
    weights: Weights,
) -> Attention:
    scores = Scores(weights.scores())
    _check_dim(weights.dim(), scores.letters)
    value, layout = _values(right, letters)
    return Attention(
        product=node,
        left=left,
        at=at,
        scores=scores,
        value=value,
        layout=layout,
        dropout=weights.dropout,
        chain=(*weights.chain, *scores.chain),
    )


def _orders(
    product: Product,
) -> list[tuple[cst.BaseExpression, cst.BaseExpression, Letters | None]]:
    """The product read both ways where an einsum names its dimensions."""
    left, right, letters = product.left, product.right, product.letters
    if letters is None:
        return [(left, right, None)]
    return [(left, right, letters), (right, left, (letters[1], letters[0], letters[2]))]


def _check_dim(dim: str, letters: str | None) -> None:
    """Refuse a softmax that is not provably over the last dimension, the keys."""
    is_counted = letters is not None and "." not in letters and dim == str(len(letters) - 1)
    if dim != "-1" and not is_counted:
        where = f"dimension {dim}" if dim else "an implicit dimension"
        raise NotAttention(f"The softmax runs over {where}, not provably the last.")


def _values(
    right: cst.BaseExpression, letters: tuple[str, str, str] | None
) -> tuple[cst.BaseExpression, tuple[str, str] | None]:
    """The values laid out for attention, and (have, want) of its result."""
    if letters is None:
        return right, None
    weights, values, out = letters
    queries, keys = weights[-2:]
    left_over = set(values) - set(weights)
    if len(left_over) != 1 or queries in values or keys not in values or keys in out:
        raise NotAttention("The einsum with the values is not a product over positions.")
    size = left_over.pop()
    laid_out = permuted(right, values, weights[:-2] + keys + size)
    have = weights[:-2] + queries + size
    if laid_out is None or permuted(cst.Name("_"), have, out) is None:
        raise NotAttention("The einsum with the values has dimensions attention does not have.")
    return laid_out, (have, out)
