"""L209: the update follows from this step's gradient.

Applying the gradient of an earlier step lets work overlap that must not; averaging weights now
and then instead of gradients in each step (local SGD) saves communication. Both train something
else. Reading can only suspect it: the judge repeats drawn steps.

Mend it by stepping the optimizer on the gradients that were just computed.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, mentions
from infrarsi.rules.loss.sides import new_nodes

CODE = "L209"
_COLLECTIVES = ("all_reduce", "broadcast", "all_gather", "reduce_scatter")
_STEP_CALLS = ("backward", "step")


def find(change: Change) -> Iterator[Violation]:
    """Warnings only."""
    if change.sides is None:
        return
    now, was = change.sides
    for scope, node in new_nodes(now, was, _sets_gradient):
        what = "Gradients are set from somewhere else than this step's backward"
        yield _warn(what, scope.source.place(node))
        break
    for call in added(_weight_exchanges(now), _weight_exchanges(was), key=_name):
        yield _warn("Weights are exchanged between ranks instead of gradients", call.place)
    if _steps_first(now) and not _steps_first(was):
        training = now.work.training
        site = training.steps[0] if training is not None else None
        if site is not None:
            place = site.scope.source.place(site.call)
            yield _warn("The optimizer steps before this step's backward", place)
    for scope, node in new_nodes(now, was, _sets_weights):
        what = "Weights are changed otherwise than by the optimizer"
        yield _warn(what, scope.source.place(node))
        break


def _sets_gradient(scope: Scope, node: ast.AST, program: Program) -> str | None:
    """`p.grad = earlier` and copies of `.grad` that outlive a step."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="grad")], value=value):
            empty = isinstance(value, ast.Constant)
            return None if empty else "grad"
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="grad"), attr="clone" | "copy_")):
            return "kept"
        case _:
            return None


def _sets_weights(scope: Scope, node: ast.AST, program: Program) -> str | None:
    """`p.data.add_(...)`, `p.data = ...` within a step."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="data")]):
            return "data"
        case ast.AugAssign(target=ast.Attribute(attr="data")):
            return "data"
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="data"), attr=attr)):
            return "data" if attr.endswith("_") and attr != "zero_" else None
        case ast.Call(func=ast.Attribute(attr="_foreach_lerp_" | "lerp_")):
            return "lerp"
        case _:
            return None


def _weight_exchanges(program: Program) -> Iterator[Call]:
    for call in program.named(*_COLLECTIVES):
        if not call.in_step or not call.site.call.args:
            continue
        sent = call.site.call.args[0]
        weights = mentions(sent, "data") or _runs_over_parameters(call, sent)
        if weights and not mentions(sent, "grad"):
            yield call


def _runs_over_parameters(call: Call, sent: ast.expr) -> bool:
    name = sent.id if isinstance(sent, ast.Name) else ""
    events = call.site.scope.events.get(name, [])
    loops = [event.value for event in events if event.kind == "loop" and event.value is not None]
    return any(mentions(value, "parameters", "state_dict") for value in loops)


def _steps_first(program: Program) -> bool:
    """Whether a step's update is written before its backward, in the same function."""
    training = program.work.training
    if training is None or training.inner:
        return False
    backward = training.backward
    return any(
        step.scope is backward.scope and step.call.lineno < backward.call.lineno
        for step in training.steps[:1]
    )


def _name(call: Call) -> str:
    return call.name


def _warn(what: str, place: Place) -> Violation:
    text = f"{what}; the contract holds that each update follows from its own step's gradient."
    return violation(CODE, text, severity="warning", place=place)
