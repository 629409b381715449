"""From `weights @ v` back through dropout, softmax, mask and scale to `q @ k^T`.

The chain is followed through names and statements. What is met that attention does not have
refuses it, with the reason. Leaves out writing the replacement (see `recipes.sdpa`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from infrarsi.patches.attention.mask import LOWEST_SEEN, Step, mask_of, number_of
from infrarsi.patches.attention.products import Product, permuted, product_of, untransposed
from infrarsi.patches.attention.scale import Factor
from infrarsi.patches.attention.scope import Entry, Value, attribute
from infrarsi.patches.syntax import argument, code_of, dotted, method, plain_arguments, receiver

_CASTS = ("float", "contiguous", "to", "type_as", "type")


class NotAttention(Exception):  # noqa: N818
    """Raised inside this package where the chain is not attention; caught by `attention_in`."""


@dataclass(eq=False)
class Attention:
    """One attention and the statements that only serve it."""

    product: cst.BaseExpression
    left: cst.BaseExpression
    at: Entry
    query: Value
    key: Value
    key_is_transposed: bool
    value: cst.BaseExpression
    layout: tuple[str, str] | None = None
    factors: list[Factor] = field(default_factory=list)
    is_causal: bool = False
    dropout: str | None = None
    chain: list[Entry] = field(default_factory=list)
    aside: list[Entry] = field(default_factory=list)


def attention_in(node: cst.BaseExpression, at: Entry) -> Attention | str | None:
    """The attention whose last product is `node`; a reason where it is only alike; else None."""
    module = at.scope.module
    product = product_of(module, node)
    if product is None:
        return None
    walker = _Walker(at)
    try:
        for left, right, letters in _orders(product):
            softmax = walker.weights(Value(left, at))
            if softmax is not None:
                return walker.attention(node, left, right, letters, softmax)
    except NotAttention as refusal:
        return str(refusal)
    return None


def _orders(
    product: Product,
) -> list[tuple[cst.BaseExpression, cst.BaseExpression, tuple[str, str, str] | None]]:
    """The product read both ways where an einsum names its dimensions."""
    left, right, letters = product.left, product.right, product.letters
    if letters is None:
        return [(left, right, None)]
    return [
        (left, right, letters),
        (right, left, (letters[1], letters[0], letters[2])),
    ]


class _Walker:
    def __init__(self, at: Entry) -> None:
        self._at = at
        self._chain: list[Entry] = []
        self._aside: list[Entry] = []
        self._dropout: str | None = None
        self._factors: list[Factor] = []
        self._causal = False
        self._zeroed = False
        self._score_letters: str | None = None

    # -- behind the softmax ------------------------------------------------------------------

    def weights(self, value: Value) -> Value | None:
        """Follow names and dropout to a softmax call; None where there is none."""
        chain: list[Entry] = []
        while True:
            node, at = value.node, value.at
            if isinstance(node, cst.Name):
                followed = self._follow(node, at, chain)
                if followed is None:
                    return None
                value = followed
            elif isinstance(node, cst.Call):
                if self._softmax_input(value) is not None:
                    self._chain += chain
                    return value
                inner = self._through(value)
                if inner is None:
                    return None
                value = inner
            else:
                return None

    def _follow(self, node: cst.Name, at: Entry, chain: list[Entry]) -> Value | None:
        definition = at.scope.definition(node.value, at)
        if definition is None or definition.value is None:
            return None
        chain.append(definition.entry)
        return definition.value

    def _through(self, value: Value) -> Value | None:
        """The input of dropout or of a cast that changes nothing."""
        node = value.node
        assert isinstance(node, cst.Call)
        full = value.at.scope.module.names.full(node.func)
        if full in ("torch.nn.functional.dropout", "torch.dropout"):
            return self._functional_dropout(value, node)
        built = self._built(node, value.at)
        if built is not None and plain_arguments(node):
            inner = Value(plain_arguments(node)[0], value.at)
            name = value.at.scope.module.names.full(built.func)
            if name == "torch.nn.Identity":
                return inner
            if name == "torch.nn.Dropout":
                self._drop(f"{dotted(node.func)}.p", "self.training", built.args)
                return inner
            return None
        base = receiver(node)
        if method(node) in _CASTS and base is not None and dotted(base) != "self":
            return Value(base, value.at)
        return None

    def _functional_dropout(self, value: Value, node: cst.Call) -> Value | None:
        source, p = argument(node, 0, "input"), argument(node, 1, "p")
        training = argument(node, 2, "training")
        if source is None:
            return None
        if p is None or number_of(Value(p, value.at)) != 0.0:
            if training is None:
                raise NotAttention("The weights' dropout is on outside training, too.")
            self._drop(code_of(p) if p is not None else "0.5", code_of(training), ())
        return Value(source, value.at)

    def _drop(self, p: str, training: str, built: Sequence[cst.Arg]) -> None:
        if self._dropout is not None:
            raise NotAttention("The weights go through dropout twice.")
        if built and code_of(built[0].value) in ("0", "0.0"):
            return
        if training == "False":
            return
        self._dropout = p if training == "True" else f"{p} if {training} else 0.0"

    def _built(self, node: cst.Call, at: Entry) -> cst.Call | None:
        """The constructor call of the module that `self.name(...)` or `nn.X(...)(...)` calls."""
        if isinstance(node.func, cst.Call):
            return node.func
        name = dotted(node.func) or ""
        if name.startswith("self.") and name.count(".") == 1:
            bound = attribute(at.scope, name.removeprefix("self."))
            if bound is not None and isinstance(bound.node, cst.Call):
                return bound.node
        return None

    def _softmax_input(self, value: Value) -> cst.BaseExpression | None:
        node = value.node
        assert isinstance(node, cst.Call)
        full = value.at.scope.module.names.full(node.func)
        built = self._built(node, value.at)
        if built is not None:
            is_softmax = value.at.scope.module.names.full(built.func) == "torch.nn.Softmax"
            return node.args[0].value if is_softmax and node.args else None
        if full in ("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"):
            return argument(node, 0, "input")
        return receiver(node) if method(node) == "softmax" else None

    def _softmax_dim(self, value: Value) -> cst.BaseExpression | None:
        node = value.node
        assert isinstance(node, cst.Call)
        built = self._built(node, value.at)
        if built is not None:
            return argument(built, 0, "dim")
        is_method = not value.at.scope.module.names.full(node.func).startswith("torch.")
        return argument(node, 0 if is_method else 1, "dim")

    # -- before the softmax ------------------------------------------------------------------

    def attention(
        self,
        node: cst.BaseExpression,
        left: cst.BaseExpression,
        right: cst.BaseExpression,
        letters: tuple[str, str, str] | None,
        softmax: Value,
    ) -> Attention:
        """Read the scores under the softmax and put everything together."""
        source = self._softmax_input(softmax)
        assert source is not None
        query, key, transposed = self._scores(Value(source, softmax.at), 0)
        self._check_dim(softmax)
        if self._zeroed and not self._causal:
            raise NotAttention("Scores are multiplied by a mask but not pushed down.")
        value, layout = self._values(right, letters)
        return Attention(
            product=node,
            left=left,
            at=self._at,
            query=query,
            key=key,
            key_is_transposed=transposed,
            value=value,
            layout=layout,
            factors=self._factors,
            is_causal=self._causal,
            dropout=self._dropout,
            chain=self._chain,
            aside=self._aside,
        )

    def _check_dim(self, softmax: Value) -> None:
        dim = self._softmax_dim(softmax)
        code = "" if dim is None else code_of(dim)
        last = None if self._score_letters is None else str(len(self._score_letters) - 1)
        if code != "-1" and (code != last or "." in (self._score_letters or ".")):
            where = f"dimension {code}" if code else "an implicit dimension"
            raise NotAttention(f"The softmax runs over {where}, not provably the last.")

    def _scores(self, value: Value, depth: int) -> tuple[Value, Value, bool]:
        """Peel masks and scale off until the product of queries and keys."""
        node, at = value.node, value.at
        if depth > 20:
            raise NotAttention("The scores are computed in too many turns.")
        product = product_of(at.scope.module, node)
        if product is not None:
            return self._operands(product, at)
        if isinstance(node, cst.Name):
            followed = self._follow(node, at, self._chain)
            if followed is None:
                raise NotAttention(f"Where the scores {node.value} come from is not plain to see.")
            return self._scores(followed, depth + 1)
        if isinstance(node, cst.BinaryOperation):
            return self._scores(self._operation(node, at), depth + 1)
        if isinstance(node, cst.Call):
            return self._scores(self._call(node, at), depth + 1)
        raise NotAttention(
            f"The scores are not a product of queries and keys: {code_of(node)[:60]}"
        )

    def _operation(self, node: cst.BinaryOperation, at: Entry) -> Value:
        left, right = Value(node.left, at), Value(node.right, at)
        if isinstance(node.operator, cst.Divide):
            self._scale(right, -1)
            return left
        if isinstance(node.operator, cst.Subtract):
            negated = cst.UnaryOperation(operator=cst.Minus(), expression=node.right)
            self._added(Value(negated, at), node.right)
            return left
        if isinstance(node.operator, cst.Add | cst.Multiply):
            scores, other = (left, right) if self._has_scores(left) else (right, left)
            if isinstance(node.operator, cst.Add):
                self._added(other, other.node)
            elif isinstance(mask_of(other), Step) and not _is_flat(other):
                self._multiplied(other)
            else:
                self._scale(other, 1)
            return scores
        raise NotAttention(f"The scores go through {code_of(node)[:60]}")

    def _has_scores(self, value: Value) -> bool:
        """Whether a product stands somewhere under the expression."""
        stack, seen = [value], 0
        while stack and seen < 200:
            seen += 1
            node, at = (top := stack.pop()).node, top.at
            if product_of(at.scope.module, node) is not None:
                return True
            if isinstance(node, cst.Name):
                definition = at.scope.definition(node.value, at)
                if definition is not None and definition.value is not None:
                    stack.append(definition.value)
                continue
            children: list[cst.CSTNode] = list(node.children)
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                children = [node.func.value, *(a.value for a in node.args)]
            stack += [Value(c, at) for c in children if isinstance(c, cst.BaseExpression)]
        return False

    def _call(self, node: cst.Call, at: Entry) -> Value:
        full = at.scope.module.names.full(node.func)
        is_function = full.startswith("torch.")
        short = (full.rpartition(".")[2] if is_function else method(node) or "").rstrip("_")
        base = argument(node, 0, "input") if is_function else receiver(node)
        first = 1 if is_function else 0
        if short == "masked_fill" and base is not None:
            chosen, fill = argument(node, first, "mask"), argument(node, first + 1, "value")
            if chosen is not None and fill is not None:
                self._masked(Value(chosen, at), Value(fill, at), True)
                return Value(base, at)
        if short == "where" and is_function and len(plain_arguments(node)) == 3:
            return self._where(plain_arguments(node), at)
        factors = {"mul": 1, "div": -1}
        if short in factors and base is not None and len(node.args) == first + 1:
            self._scale(Value(node.args[first].value, at), factors[short])
            return Value(base, at)
        if short == "add" and base is not None and len(node.args) == first + 1:
            self._added(Value(node.args[first].value, at), node.args[first].value)
            return Value(base, at)
        if short in _CASTS and base is not None and not is_function:
            return Value(base, at)
        raise NotAttention(f"The scores go through {code_of(node.func)[:60]}.")

    def _where(self, given: list[cst.BaseExpression], at: Entry) -> Value:
        chosen = Value(given[0], at)
        if number_of(Value(given[2], at)) is not None:
            self._masked(chosen, Value(given[2], at), False)
            return Value(given[1], at)
        self._masked(chosen, Value(given[1], at), True)
        return Value(given[2], at)

    def _masked(self, chosen: Value, fill: Value, fills_where_true: bool) -> None:
        value, mask = number_of(fill), mask_of(chosen)
        if value is None or value > LOWEST_SEEN:
            raise NotAttention("What masked scores are filled with is not low enough.")
        blocked = (0.0, 1.0) if fills_where_true else (1.0, 0.0)
        if not isinstance(mask, Step) or mask.edge != 0 or _truth(mask) != blocked:
            raise NotAttention(f"The mask {code_of(chosen.node)[:60]} is not provably causal.")
        self._causal = True
        self._set_aside(chosen)

    def _added(self, mask: Value, written: cst.BaseExpression) -> None:
        step = mask_of(mask)
        if not isinstance(step, Step) or step.edge != 0 or step.low != 0 or step.high > LOWEST_SEEN:
            raise NotAttention(f"{code_of(written)[:60]} is added and is no causal mask.")
        self._causal = True
        self._set_aside(Value(written, mask.at))

    def _multiplied(self, mask: Value) -> None:
        step = mask_of(mask)
        if not isinstance(step, Step) or step.edge != 0 or (step.low, step.high) != (1.0, 0.0):
            raise NotAttention(f"Scores are multiplied by {code_of(mask.node)[:60]}.")
        self._zeroed = True
        self._set_aside(mask)

    def _scale(self, value: Value, power: int) -> None:
        self._factors.append(Factor(value, power))
        self._set_aside(value)

    def _set_aside(self, value: Value) -> None:
        """Note the statements that only define names of a mask or scale."""
        for name in _names_in(value.node):
            definition = value.at.scope.definition(name, value.at)
            if definition is None or definition.value is None or definition.entry in self._aside:
                continue
            if mask_of(definition.value) is not None or _is_size(definition.value.node):
                self._aside.append(definition.entry)
                self._set_aside(definition.value)

    # -- operands ----------------------------------------------------------------------------

    def _operands(self, product: Product, at: Entry) -> tuple[Value, Value, bool]:
        if product.letters is not None:
            return self._lettered_operands(product, at)
        right = Value(product.right, at)
        key, transposed = untransposed(at.scope.module, right)
        if not transposed and isinstance(product.right, cst.Name):
            definition = at.scope.definition(product.right.value, at)
            if definition is not None and definition.value is not None:
                inner, found = untransposed(at.scope.module, definition.value)
                if found:
                    self._aside.append(definition.entry)
                    return Value(product.left, at), Value(inner, definition.entry), True
        return Value(product.left, at), Value(key, at), transposed

    def _lettered_operands(self, product: Product, at: Entry) -> tuple[Value, Value, bool]:
        assert product.letters is not None
        left, right, out = product.letters
        queries, keys = out[-2:]
        if queries in left:
            terms = ((product.left, left), (product.right, right))
        else:
            terms = ((product.right, right), (product.left, left))
        summed = (set(left) & set(right)) - set(out)
        if len(summed) != 1 or len(out) < 2:
            raise NotAttention("The einsum of the scores sums over more than the head size.")
        letter = summed.pop()
        query = permuted(terms[0][0], terms[0][1], out[:-2] + queries + letter)
        key = permuted(terms[1][0], terms[1][1], out[:-2] + keys + letter)
        if query is None or key is None:
            raise NotAttention("The einsum of the scores has dimensions attention does not have.")
        self._score_letters = out
        return Value(query, at), Value(key, at), True

    def _values(
        self, right: cst.BaseExpression, letters: tuple[str, str, str] | None
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


def _truth(mask: Step) -> tuple[float, float]:
    return float(bool(mask.low)), float(bool(mask.high))


def _is_flat(value: Value) -> bool:
    mask = mask_of(value)
    return isinstance(mask, Step) and mask.is_constant


def _is_size(node: cst.BaseExpression) -> bool:
    code = code_of(node)
    return ".size(" in code or ".shape[" in code or "sqrt(" in code or "** -0.5" in code


def _names_in(node: cst.BaseExpression) -> list[str]:
    names: list[str] = []
    stack: list[cst.CSTNode] = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, cst.Name):
            names.append(top.value)
        elif isinstance(top, cst.Attribute | cst.Arg):
            stack.append(top.value)
        else:
            stack += top.children
    return names
