"""From the scores back through masks and scale to the product of queries and keys."""

import libcst as cst

from infrarsi.patches.attention.mask import LOWEST_SEEN, mask_of, number_of
from infrarsi.patches.attention.products import Product, permuted, product_of, untransposed
from infrarsi.patches.attention.refusal import NotAttention
from infrarsi.patches.attention.scale import Factor
from infrarsi.patches.attention.scope import Entry, Value
from infrarsi.patches.attention.steps import Step
from infrarsi.patches.attention.weights import cast_input, follow
from infrarsi.patches.syntax import argument, children, code_of, method, plain_arguments, receiver


class Scores:
    """What stands between `q @ k^T` and the softmax.

    `aside` are statements that only define a mask, a scale or a transposed key.
    """

    query: Value
    key: Value
    key_is_transposed: bool

    def __init__(self, value: Value) -> None:
        """Peel masks and scale off until the product of queries and keys.

        Raises:
            NotAttention: something else is done to the scores, or a mask is not causal.
        """
        self.chain: list[Entry] = []
        self.aside: list[Entry] = []
        self.factors: list[Factor] = []
        self.is_causal = False
        self.letters: str | None = None
        self._is_zeroed = False
        self.query, self.key, self.key_is_transposed = self._peel(value, 0)
        if self._is_zeroed and not self.is_causal:
            raise NotAttention("Scores are multiplied by a mask but not pushed down.")

    def _peel(self, value: Value, depth: int) -> tuple[Value, Value, bool]:
        node, at = value.node, value.at
        if depth > 20:
            raise NotAttention("The scores are computed in too many turns.")
        product = product_of(at.scope.module, node)
        if product is not None:
            return self._operands(product, at)
        if isinstance(node, cst.Name):
            followed = follow(value, self.chain)
            if followed is None:
                raise NotAttention(f"Where the scores {node.value} come from is not plain to see.")
            return self._peel(followed, depth + 1)
        if isinstance(node, cst.BinaryOperation):
            return self._peel(self._operation(node, at), depth + 1)
        if isinstance(node, cst.Call):
            return self._peel(self._call(node, at), depth + 1)
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
            below = children(node)
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                below = [node.func.value, *(a.value for a in node.args)]
            stack += [Value(b, at) for b in below if isinstance(b, cst.BaseExpression)]
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
        cast = cast_input(Value(node, at))
        if cast is not None:
            return cast
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
        self.is_causal = True
        self._set_aside(chosen)

    def _added(self, mask: Value, written: cst.BaseExpression) -> None:
        step = mask_of(mask)
        if not isinstance(step, Step) or step.edge != 0 or step.low != 0 or step.high > LOWEST_SEEN:
            raise NotAttention(f"{code_of(written)[:60]} is added and is no causal mask.")
        self.is_causal = True
        self._set_aside(Value(written, mask.at))

    def _multiplied(self, mask: Value) -> None:
        step = mask_of(mask)
        if not isinstance(step, Step) or step.edge != 0 or (step.low, step.high) != (1.0, 0.0):
            raise NotAttention(f"Scores are multiplied by {code_of(mask.node)[:60]}.")
        self._is_zeroed = True
        self._set_aside(mask)

    def _scale(self, value: Value, power: int) -> None:
        self.factors.append(Factor(value, power))
        self._set_aside(value)

    def _set_aside(self, value: Value) -> None:
        """Note the statements that only define names of a mask or scale."""
        for name in _names_in(value.node):
            definition = value.at.scope.definition(name, value.at)
            if definition is None or definition.value is None or definition.entry in self.aside:
                continue
            if mask_of(definition.value) is not None or _is_size(definition.value.node):
                self.aside.append(definition.entry)
                self._set_aside(definition.value)

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
                    self.aside.append(definition.entry)
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
        self.letters = out
        return Value(query, at), Value(key, at), True


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
            stack += children(top)
    return names
