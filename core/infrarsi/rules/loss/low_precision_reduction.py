"""L212: gradients are added up and reduced in 32 bits.

Compression hooks and 16-bit reductions halve the traffic and lose what small gradients say.
FSDP's `MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)` is fine.

Mend it by removing the hook, or by reducing in float32.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import Symbol
from infrarsi.reading.written_out import CASTS, FORMATS
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, mentions
from infrarsi.rules.loss.sides import new_nodes

CODE = "L212"
_LOW = {"bf16", "fp16"}
_POLICIES = ("MixedPrecisionPolicy", "MixedPrecision")


def find(change: Change) -> Iterator[Violation]:
    """An error for compression and 16-bit reductions, a warning for other hooks and casts."""
    if change.sides is None:
        return
    now, was = change.sides
    for call in added(now.named("register_comm_hook"), was.named("register_comm_hook")):
        hook = call.argument("hook", 1)
        name = hook.name if isinstance(hook, Symbol) else ""
        known = any(word in name for word in ("compress", "powerSGD", "quantization"))
        what = "A hook compresses gradients" if known else "A hook may change gradients"
        yield _finding(f"{what} before they are reduced", call.place, known)
    for call in added(now.named(*_POLICIES), was.named(*_POLICIES)):
        if _reduces_low(call):
            yield _finding("Gradients are reduced in 16 bits", call.place, certain=True)
    for scope, node in new_nodes(now, was, _casts_gradient):
        yield _finding("Gradients are cast to 16 bits", scope.source.place(node), certain=True)
        break


def _reduces_low(call: Call) -> bool:
    given = call.argument("reduce_dtype", 1)
    if given is None:
        given = call.argument("param_dtype", 0)
    return isinstance(given, Symbol) and FORMATS.get(given.name) in _LOW


def _casts_gradient(scope: Scope, node: ast.AST, program: Program) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=attr)) if mentions(base, "grad"):
            if CASTS.get(attr) in _LOW:
                return "cast"
            if attr in {"to", "type"} and any(_is_low(a, scope, program) for a in node.args):
                return "cast"
        case _:
            pass
    return None


def _is_low(node: ast.expr, scope: Scope, program: Program) -> bool:
    value = program.evaluator.value(node, program.evaluator.frame(scope))
    return isinstance(value, Symbol) and FORMATS.get(value.name) in _LOW


def _finding(what: str, place: Place, certain: bool) -> Violation:
    text = f"{what}; the contract holds them in 32 bits."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
