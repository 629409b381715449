"""L201: the loss function must stay.

Another loss, smoothed labels, class weights or a temperature make other gradients: whatever such
a run is faster at, it is another training. What backward is called on is written out on both
sides, so that chunks, fused kernels and moved code that compute the same are at most a warning.

Mend it by computing the loss from the same logits and targets with the same function.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading.objective import Objective, callee_of, loss_call
from infrarsi.reading.syntax import unparse
from infrarsi.reading.written_out import is_cast
from infrarsi.rules.change import Change
from infrarsi.rules.loss.sides import objectives, same_number

CODE = "L201"
_ENTROPY = {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"}
_OTHER = {
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "hinge_embedding_loss",
    "multi_margin_loss",
    "cosine_embedding_loss",
    "MSELoss",
    "L1Loss",
    "KLDivLoss",
    "BCEWithLogitsLoss",
}
_HELD = {"label_smoothing": 0.0, "weight": None}


def find(change: Change) -> Iterator[Violation]:
    """An error for another function, label smoothing, weights or temperature; else a warning."""
    both = objectives(change)
    if both is None:
        return
    now, was = both
    call, before = loss_call(now.main.core), loss_call(was.main.core)
    place = now.main.place or now.place
    if before is None:
        return
    if call is None:
        yield from _without_loss_call(now, was, place)
    elif callee_of(call) != callee_of(before):
        yield from _other_function(callee_of(call), callee_of(before), place)
    else:
        found = list(_arguments(call, before, place))
        yield from found
        if not found and was.is_whole and not now.is_whole and now.main.text != was.main.text:
            yield _warn("The loss is computed in one of several ways", place)
    if len(now.terms) > len(was.terms) and now.is_whole:
        yield _warn("A term was added to the loss", place)


def _without_loss_call(now: Objective, was: Objective, place: Place) -> Iterator[Violation]:
    was_name = callee_of(loss_call(was.main.core) or ast.Call(ast.Name("?"), [], []))
    if now.main.text != was.main.text:
        yield _warn(f"The loss no longer comes from {was_name}", place)


def _other_function(name: str, before: str, place: Place) -> Iterator[Violation]:
    if name in _OTHER and before in _ENTROPY:
        text = f"The loss is {name} instead of {before}; the contract holds {before}."
        yield violation(CODE, text, place=place)
    elif not (name in _ENTROPY and before in _ENTROPY):
        yield _warn(f"The loss comes from {name} instead of {before}", place)


def _arguments(call: ast.Call, before: ast.Call, place: Place) -> Iterator[Violation]:
    given, held = _keywords(call), _keywords(before)
    for name, default in _HELD.items():
        now, was = given.get(name, default), held.get(name, default)
        if not same_number(now, was):
            text = f"The loss has {name}={now}; the contract holds {name}={was}."
            yield violation(CODE, text, place=place)
            return
    scale, was_scale = _scale(call), _scale(before)
    if scale is not None and was_scale is not None and not same_number(scale, was_scale):
        text = f"Logits are scaled by {scale:g} before the loss instead of {was_scale:g}."
        yield violation(CODE, text, place=place)
        return
    for number, name in enumerate(("logits", "targets")):
        if _plain(call, number) != _plain(before, number):
            yield _warn(f"The {name} reach the loss by another way", place)
            return


def _keywords(call: ast.Call) -> dict[str, object]:
    return {
        keyword.arg: keyword.value.value
        if isinstance(keyword.value, ast.Constant)
        else unparse(keyword.value)
        for keyword in call.keywords
        if keyword.arg is not None
    }


def _argument(call: ast.Call, number: int) -> ast.expr | None:
    if number < len(call.args):
        return call.args[number]
    names = ("input", "target")
    return next((k.value for k in call.keywords if k.arg == names[number]), None)


def _scale(call: ast.Call) -> float | None:
    """The number logits are multiplied by on their way into the loss."""
    node, scale = _argument(call, 0), 1.0
    while node is not None:
        match node:
            case ast.BinOp(
                left=left, op=ast.Mult(), right=ast.Constant(value=int() | float() as n)
            ):
                node, scale = left, scale * n
            case ast.BinOp(
                left=ast.Constant(value=int() | float() as n), op=ast.Mult(), right=right
            ):
                node, scale = right, scale * n
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as n)):
                node, scale = left, scale / (n or 1)
            case ast.Call(args=[inner, *_]) if is_cast(node):
                node = inner
            case ast.Name() | ast.Subscript():
                return scale
            case _:
                return None
    return None


def _plain(call: ast.Call, number: int) -> str:
    """An argument without casts and slices, which other rules judge."""
    node = _argument(call, number)
    return unparse(_Plain().visit(node)) if node is not None else ""


class _Plain(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_cast(node):
            return self.visit(node.args[0])
        return self.rebuilt(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, ast.Slice) for part in parts):
            return self.visit(node.value)
        return self.rebuilt(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return self.rebuilt(node)

    def rebuilt(self, node: ast.AST) -> ast.AST:
        fields = {name: self._field(value) for name, value in ast.iter_fields(node)}
        return type(node)(**fields)

    def _field(self, value: object) -> object:
        if isinstance(value, ast.AST):
            return self.visit(value)
        return [self._field(item) for item in value] if isinstance(value, list) else value


def _warn(what: str, place: Place) -> Violation:
    text = f"{what}; the contract holds the same function of logits and targets."
    return violation(CODE, text, severity="warning", place=place)
