"""L208: a step's gradient is the baseline's.

The losses of a step's micro-batches are divided so that they average. Other divisors, sums for
means, scaled or edited gradients change the update while the printed loss may stay the same.
Regrouping is fine: twice the micro-batch with half the accumulation divides by half as much.

Mend it by dividing the loss by the accumulation.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.objective import Objective, loss_call
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.loss.sides import new_nodes, objectives, same_number

CODE = "L208"
_EDITS = {"mul_", "div_", "add_", "sub_", "copy_", "zero_", "sign_", "clamp_", "lerp_"}
_HOOKS = (
    "register_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_module_forward_hook",
    "register_multi_grad_hook",
)


def find(change: Change) -> Iterator[Violation]:
    """An error where the divisor surely differs, a warning where gradients are handled anew."""
    if change.sides is None:
        return
    now, was = change.sides
    edits = list(new_nodes(now, was, _edits_gradient))
    both = objectives(change)
    if both is not None:
        yield from _divisor(change, *both, mended=bool(edits))
    for scope, node in edits[:1]:
        yield _warn("Gradients are edited after backward", scope.source.place(node))
    for call in added(now.named(*_HOOKS), was.named(*_HOOKS)):
        yield _warn("A hook may change values or gradients on their way", call.place)
    yield from _own_backward(now, was)


def _divisor(change: Change, now: Objective, was: Objective, mended: bool) -> Iterator[Violation]:
    place = now.main.place or now.place
    if not (now.is_whole and was.is_whole):
        return
    if now.main.by != was.main.by:
        unread = change.fact("accumulation").value is None
        if not (unread and len(now.main.by) > len(was.main.by)):
            yield _warn("The loss is divided by something else before backward", place)
        return
    if _reduction(now) != _reduction(was):
        certain = same_number(now.main.factor, was.main.factor) and not mended
        what = f"The loss is reduced by {_reduction(now)} instead of {_reduction(was)}"
        yield _breach(what, place) if certain else _warn(what, place)
        return
    n_micro, n_held = change.count(change.fact("accumulation")), _accumulation(change)
    if n_micro is None or n_held is None:
        guess, guess_held = _guesses(change)
        if same_number(now.main.factor * guess, was.main.factor * guess_held):
            return
        if not same_number(now.main.factor, was.main.factor):
            yield _warn("The loss is weighted otherwise before backward", place)
        return
    weight, held = now.main.factor * n_micro, was.main.factor * n_held
    if same_number(weight, held):
        return
    what = (
        f"The loss is multiplied by {now.main.factor:g} in each of {n_micro} micro-steps, "
        f"{weight:g} in a step instead of {held:g}"
    )
    yield _warn(what, place) if mended else _breach(what, place)


def _guesses(change: Change) -> tuple[float, float]:
    """What the accumulation is called to be on both sides where it cannot be followed."""
    facts = (
        change.fact("accumulation"),
        change.was.reading.fact("accumulation") if change.was is not None else None,
    )
    guesses = [fact.guess if fact is not None else None for fact in facts]
    numbers = [float(guess) for guess in guesses if isinstance(guess, int | float)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (1.0, 1.0)


def _accumulation(change: Change) -> int | None:
    fact = change.was.reading.fact("accumulation") if change.was is not None else None
    return change.count(fact) if fact is not None else None


def _reduction(objective: Objective) -> str:
    call = loss_call(objective.main.core)
    for keyword in call.keywords if call is not None else ():
        if keyword.arg == "reduction":
            return str(getattr(keyword.value, "value", unparse(keyword.value)))
    return "mean"


def _edits_gradient(scope: Scope, node: ast.AST, program: Program) -> str | None:
    """A statement that scales or overwrites `.grad`; a constant key, so that styles are one."""
    match node:
        case ast.AugAssign(target=ast.Attribute(attr="grad")):
            return "edit"
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="grad"), attr=attr)):
            return "edit" if attr in _EDITS else None
        case ast.Call(func=ast.Attribute(attr="_foreach_mul_" | "_foreach_div_" | "_foreach_add_")):
            return "edit"
        case _:
            return None


def _own_backward(now: Program, was: Program) -> Iterator[Violation]:
    held = {scope.name for scope in _autograd_functions(was)}
    for scope in _autograd_functions(now):
        if scope.name not in held:
            what = f"{scope.name} computes a backward pass of its own"
            yield _warn(what, scope.source.place(scope.node))


def _autograd_functions(program: Program) -> Iterator[Scope]:
    for scope in program.project.scopes.values():
        if isinstance(scope.node, ast.ClassDef) and any(
            unparse(base).endswith("Function") for base in scope.node.bases
        ):
            yield scope


def _breach(what: str, place: Place) -> Violation:
    text = f"{what}; the contract holds the baseline's gradient."
    return violation(CODE, text, place=place)


def _warn(what: str, place: Place) -> Violation:
    text = f"{what}; the contract holds the baseline's gradient."
    return violation(CODE, text, severity="warning", place=place)
