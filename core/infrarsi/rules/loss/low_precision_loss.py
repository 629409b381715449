"""L202: the loss is computed in 32 bits.

A bfloat16 loss near 4 moves in steps of 1/64: small differences between tokens vanish, and with
them their gradients. Under 16-bit autocast the model's logits come out in 16 bits, so they are
cast (`logits.float()`) or the loss is computed inside the autocast region, where torch does so.

Mend it by `.float()` on the logits before the loss.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.objective import Objective, loss_call
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Function
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known, Made
from infrarsi.reading.walking import walk
from infrarsi.reading.written_out import forward_scope, is_cast
from infrarsi.rules.change import Change
from infrarsi.rules.loss.sides import has_name

CODE = "L202"
_LOW = {"bf16": "bfloat16", "fp16": "float16"}


def find(change: Change) -> Iterator[Violation]:
    """An error where logits surely enter the loss in 16 bits, a warning where they may."""
    if change.sides is None:
        return
    now, was = change.sides
    if now.objective is None or was.objective is None:
        return
    place = now.objective.main.place or now.objective.place
    cast, cast_before = _cast_of(now.objective), _cast_of(was.objective)
    if cast in _LOW and cast_before not in _LOW:
        text = f"The loss is computed in {_LOW[cast]}; the contract holds it in float32."
        yield violation(CODE, text, place=place)
        return
    precision = now.reading.fact("precision")
    is_low = precision is not None and precision.value in _LOW
    unknown = precision is None or precision.unknown is not None
    if cast is not None or not (is_low or unknown) or _loss_in_low(was, cast_before):
        return
    if unknown and cast_before is None:
        return
    if _is_protected(now) or cast_whole(now):
        return
    certain = is_low and not any(call.in_model for call in now.named("autocast"))
    yield violation(
        CODE,
        "Logits enter the loss in 16 bits, as autocast leaves them; the contract holds the loss "
        "in float32.",
        severity="error" if certain else "warning",
        place=place,
    )


def cast_whole(program: Program) -> bool:
    """Whether all parameters are cast to 16 bits, which is a breach of its own (L203)."""
    fact = program.reading.fact("parameters")
    return fact is not None and fact.value in _LOW


def _cast_of(objective: Objective) -> str | None:
    """The format of the last cast on the logits' way into the loss, or of the loss itself."""
    core = objective.main.core
    call = loss_call(core)
    for node in walk(core):
        if call is not None and node is call:
            break
        if is_cast(node) in _LOW:
            return is_cast(node)
    node: ast.AST | None = call.args[0] if call is not None and call.args else None
    while node is not None:
        if (to := is_cast(node)) is not None:
            return to
        node = next((n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)), None)
    return None


def _loss_in_low(was: Program, cast: str | None) -> bool:
    """Whether the baseline's own loss is computed from 16-bit logits."""
    precision = was.reading.fact("precision")
    low = precision is not None and precision.value in _LOW
    return low and cast is None and not _is_protected(was)


def _is_protected(program: Program) -> bool:
    """Whether autocast computes the loss in 32 bits, or the model casts its logits itself."""
    objective = program.objective
    for site in objective.losses if objective is not None else ():
        if _under_autocast(program, site):
            return True
    for site in program.work.flow.forwards:
        value = program.evaluator.value(site.call.func, program.evaluator.frame(site.scope))
        scope = forward_scope(program.evaluator, site, value)
        returns = scope.returns if scope is not None else []
        if any(event.value is not None and has_name(event.value, "float") for event in returns):
            return True
        if scope is not None and any(has_name(event.node, "float32") for event in returns):
            return True
    return False


def _under_autocast(program: Program, site: CallSite) -> bool:
    sites = [site]
    if isinstance(site.scope.node, Function):
        sites += program.evaluator.call_sites(site.scope)
        if site.scope.name == "forward":
            sites += program.work.flow.forwards
    return any(_stands_in(program, inner) for inner in sites)


def _stands_in(program: Program, site: CallSite) -> bool:
    for ancestor in site.scope.source.ancestors(site.call):
        if isinstance(ancestor, ast.With | ast.AsyncWith):
            for item in ancestor.items:
                value = program.evaluator.value(
                    item.context_expr, program.evaluator.frame(site.scope)
                )
                if isinstance(value, Made) and value.callee.endswith("autocast"):
                    return _is_on(program, value)
                if "autocast" in unparse(item.context_expr):
                    return True
    return False


def _is_on(program: Program, made: Made) -> bool:
    for keyword in made.call.keywords:
        if keyword.arg == "enabled":
            value = program.evaluator.value(keyword.value, made.frame)
            return not (isinstance(value, Known) and not value.value)
    return True
