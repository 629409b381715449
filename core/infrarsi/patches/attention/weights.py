"""From the attention weights back through dropout to the softmax."""

from collections.abc import Sequence

import libcst as cst

from infrarsi.patches.attention.mask import number_of
from infrarsi.patches.attention.refusal import NotAttention
from infrarsi.patches.attention.scope import Entry, Value, attribute
from infrarsi.patches.syntax import argument, code_of, dotted, method, plain_arguments, receiver

_CASTS = ("float", "contiguous", "to", "type_as", "type")
_FP32 = ("torch.float32", "torch.float")


def cast_input(value: Value) -> Value | None:
    """`x` of `x.float()`, `x.to(q.dtype)` and the like, which keep fp32 values as they are."""
    node, names = value.node, value.at.scope.module.names
    if not isinstance(node, cst.Call) or method(node) not in _CASTS:
        return None
    base = receiver(node)
    given = [names.full(arg.value) for arg in node.args]
    if base is None or dotted(base) in ("self", "torch"):
        return None
    if any(full.startswith("torch.") and full not in _FP32 for full in given):
        return None
    return Value(base, value.at)


def follow(value: Value, chain: list[Entry]) -> Value | None:
    """What a name holds; its statement is added to `chain`. None where that is not plain."""
    assert isinstance(value.node, cst.Name)
    definition = value.at.scope.definition(value.node.value, value.at)
    if definition is None or definition.value is None:
        return None
    chain.append(definition.entry)
    return definition.value


class Weights:
    """The softmax under an expression, the statements on the way and the dropout met."""

    def __init__(self, value: Value) -> None:
        """Follow names and dropout; `softmax` stays None where there is none.

        Raises:
            NotAttention: there is dropout that cannot be passed on.
        """
        self.chain: list[Entry] = []
        self.dropout: str | None = None
        self.softmax: Value | None = None
        found: Value | None = value
        while found is not None and self.softmax is None:
            if isinstance(found.node, cst.Name):
                found = follow(found, self.chain)
            elif not isinstance(found.node, cst.Call):
                return
            elif _softmax_input(found) is not None:
                self.softmax = found
            else:
                found = self._through(found)

    def scores(self) -> Value:
        """What the softmax is taken of."""
        assert self.softmax is not None
        source = _softmax_input(self.softmax)
        assert source is not None
        return Value(source, self.softmax.at)

    def dim(self) -> str:
        """The softmax's dimension as written, "" where it is left out."""
        assert self.softmax is not None
        given = _softmax_dim(self.softmax)
        return "" if given is None else code_of(given)

    def _through(self, value: Value) -> Value | None:
        """The input of dropout or of a cast that changes nothing."""
        node = value.node
        assert isinstance(node, cst.Call)
        full = value.at.scope.module.names.full(node.func)
        if full in ("torch.nn.functional.dropout", "torch.dropout"):
            return self._functional_dropout(value, node)
        built = _built(node, value.at)
        if built is not None and plain_arguments(node):
            inner = Value(plain_arguments(node)[0], value.at)
            name = value.at.scope.module.names.full(built.func)
            if name == "torch.nn.Identity":
                return inner
            if name == "torch.nn.Dropout":
                self._drop(f"{dotted(node.func)}.p", "self.training", built.args)
                return inner
            return None
        return cast_input(value)

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
        if self.dropout is not None:
            raise NotAttention("The weights go through dropout twice.")
        if built and code_of(built[0].value) in ("0", "0.0"):
            return
        if training == "False":
            return
        self.dropout = p if training == "True" else f"{p} if {training} else 0.0"


def _built(node: cst.Call, at: Entry) -> cst.Call | None:
    """The constructor call of the module that `self.name(...)` or `nn.X(...)(...)` calls."""
    if isinstance(node.func, cst.Call):
        return node.func
    name = dotted(node.func) or ""
    if name.startswith("self.") and name.count(".") == 1:
        bound = attribute(at.scope, name.removeprefix("self."))
        if bound is not None and isinstance(bound.node, cst.Call):
            return bound.node
    return None


def _softmax_input(value: Value) -> cst.BaseExpression | None:
    node = value.node
    assert isinstance(node, cst.Call)
    full = value.at.scope.module.names.full(node.func)
    built = _built(node, value.at)
    if built is not None:
        is_softmax = value.at.scope.module.names.full(built.func) == "torch.nn.Softmax"
        return node.args[0].value if is_softmax and node.args else None
    if full in ("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"):
        return argument(node, 0, "input")
    return receiver(node) if method(node) == "softmax" else None


def _softmax_dim(value: Value) -> cst.BaseExpression | None:
    node = value.node
    assert isinstance(node, cst.Call)
    built = _built(node, value.at)
    if built is not None:
        return argument(built, 0, "dim")
    is_method = not value.at.scope.module.names.full(node.func).startswith("torch.")
    return argument(node, 0 if is_method else 1, "dim")
