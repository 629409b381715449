"""T307: no update happens before timing starts.

A warm-up that really trains gives steps away: the loss is lower when the clock starts. Updates
outside the training loop that were not there are looked for. Running the model to warm it up is
allowed where weights and optimizer are restored afterwards; whether they are, a run tells.

Mend it by taking the updates out, or by restoring what they changed.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Instance, Made, Value, same_value
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.remembered import remembered
from infrarsi.rules.timing.moments import moments

CODE = "T307"
_HELD = "the contract holds that no update happens before timing starts"
_WRITES = {"add_", "sub_", "addcdiv_", "addcmul_", "lerp_", "mul_"}
_RESTORES = {"load_state_dict", "copy_", "_foreach_copy_", "deepcopy", "set_state_dict", "restore"}


def find(change: Change) -> Iterator[Violation]:
    """An error where updates outside the loop are not rolled back, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    if now.work.training is None or was.work.training is None:
        return
    restores = _n_restores(now) > _n_restores(was)
    for call in added(_updates(now), _updates(was), _name):
        certain = not restores and _goes_back(now) and _of_the_model(now, call)
        severity: Severity = "error" if certain else "warning"
        yield violation(
            CODE,
            f"`{call.signature[:60]}` updates weights outside the training loop; {_HELD}.",
            severity=severity,
            place=call.place,
        )
        return
    for place in _by_hand(now)[len(_by_hand(was)) :][:1]:
        yield violation(
            CODE,
            f"Weights are changed by hand after a backward outside the training loop; {_HELD}.",
            severity="warning",
            place=place,
        )


@remembered
def _by_hand(program: Program) -> tuple[Place, ...]:
    """Loops over parameters that change them, where backward runs outside the training loop."""
    inside = {moment.node for moment in moments(program)}
    found: list[Place] = []
    for call in program.named("backward", "grad"):
        scope = call.site.scope
        if call.site.call in inside or call.in_step or call.in_model:
            continue
        for node in walk(scope.node):
            if not isinstance(node, ast.For) or "parameters()" not in unparse(node.iter):
                continue
            if any(_changes(part) for part in walk(node)):
                found.append(scope.source.place(node.target, node.iter))
    return tuple(dict.fromkeys(found))


def _changes(node: ast.AST) -> bool:
    match node:
        case ast.AugAssign(target=ast.Name() | ast.Attribute(attr="data")):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _WRITES
        case _:
            return False


def _updates(program: Program) -> list[Call]:
    """Optimizer steps that are written outside the training loop and what it enters."""
    inside = {moment.node for moment in moments(program)}
    training = program.work.training
    if training is None or training.update is None:
        return []
    outer = [loop.node for loop in (training.update, *training.outer)]
    spanned = {id(node) for loop in outer[-1:] for node in walk(loop)}
    return [
        call
        for call in program.called(["step"])
        if not call.is_dead
        and call.site.call not in inside
        and id(call.site.call) not in spanned
        and not call.in_step
        and _is_optimizer(call)
        and _is_called(program, call.site.scope)
    ]


def _is_called(program: Program, scope: Scope) -> bool:
    """Whether a function is called by name: one that is only registered runs within backward."""
    return not isinstance(scope.node, Function) or bool(program.evaluator.call_sites(scope))


def _of_the_model(program: Program, call: Call) -> bool:
    """Whether an optimizer surely holds what the training loop's optimizer holds."""
    training = program.work.training
    if training is None or not training.steps:
        return False
    ours = _held(program, training.steps[0])
    return any(same_value(a, b) for a in _held(program, call.site) for b in ours)


def _held(program: Program, site: CallSite) -> list[Value]:
    """The optimizer of a step call, and the objects its parameters come from."""
    func = site.call.func
    if not isinstance(func, ast.Attribute):
        return []
    evaluator = program.evaluator
    value = evaluator.value(func.value, evaluator.frame(site.scope))
    if not isinstance(value, Made):
        return []
    names = [
        node
        for argument in value.call.args[:1]
        for node in walk(argument)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    ]
    found = [evaluator.value(node, value.frame) for node in names]
    return [value, *(held for held in found if isinstance(held, Made | Instance))]


def _is_optimizer(call: Call) -> bool:
    callee, receiver = call.callee.lower(), call.receiver.lower()
    if "sched" in receiver or "prof" in receiver or "lr_scheduler" in callee:
        return False
    return "optim" in callee or "opt" in receiver or "scaler" in receiver


def _goes_back(program: Program) -> bool:
    """Whether there is a backward outside the loop to step on."""
    return sum(1 for _ in program.named("backward", "grad")) > 1


def _n_restores(program: Program) -> int:
    return len(program.called(_RESTORES))


def _name(call: Call) -> str:
    return call.name
