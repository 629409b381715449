"""L207: every parameter is trained.

Freezing layers, cutting the graph (`detach`, `no_grad`) or giving the optimizer only some of the
parameters saves backward work and state, and is another training.

Mend it by removing what cuts gradients off. Evaluation and bookkeeping under `no_grad` are fine.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.flow import is_model
from infrarsi.reading.optimization import find_optimizers
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.loss.methods import changed_methods
from infrarsi.rules.loss.narrower import narrowing
from infrarsi.rules.loss.sides import has_name

CODE = "L207"
_OFF = {"no_grad", "inference_mode", "set_grad_enabled"}
_CUTS = {"detach", "detach_"}


def find(change: Change) -> Iterator[Violation]:
    """An error for what surely cuts gradients off, a warning for what may."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _switched_off(now, was)
    yield from _assigned(now, was)
    yield from _without_gradient(now, was)
    yield from _detached(now, was)
    yield from _by_data(now, was)
    yield from _given_fewer(now, was)


def _switched_off(now: Program, was: Program) -> Iterator[Violation]:
    for call in added(now.named("requires_grad_"), was.named("requires_grad_")):
        value = call.argument("requires_grad", 0)
        if value is None or (isinstance(value, Known) and value.value):
            continue
        name = call.receiver
        fresh = name.startswith("torch.") and "nn." not in name
        if not fresh:
            certain = isinstance(value, Known) and not call.conditions
            yield _breach("Parameters are frozen by requires_grad_(False)", call.place, certain)


def _assigned(now: Program, was: Program) -> Iterator[Violation]:
    left = len(list(_false_writes(was)))
    for number, (scope, node) in enumerate(_false_writes(now)):
        if number >= left:
            what = "Parameters are frozen by requires_grad = False"
            yield _breach(what, scope.source.place(node), certain=True)


def _false_writes(program: Program) -> Iterator[tuple[Scope, ast.AST]]:
    for scope, path in program.project.attribute_writes.get("requires_grad", []):
        for event in scope.events[path]:
            value = event.value
            known = (
                program.evaluator.value(value, program.evaluator.frame(scope)) if value else None
            )
            if not (isinstance(known, Known) and known.value):
                yield scope, event.node


def _without_gradient(now: Program, was: Program) -> Iterator[Violation]:
    for call in added(_switches(now), _switches(was), key=_where):
        body = _body_under(call)
        if not body:
            continue
        passes = any(_passes_model(now, call.site.scope, node) for node in body)
        if passes:
            certain = call.name != "set_grad_enabled"
            what = f"A part of the model runs under {call.name}"
            yield _breach(what, call.place, certain)
        elif call.in_model and any(_sums_up(node) for node in body):
            what = f"A value the model sums up is computed under {call.name}"
            yield _breach(what, call.place, certain=False)


def _sums_up(body: ast.AST) -> bool:
    """Whether a whole tensor is reduced to one number, as loss terms are."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"mean", "sum"}
        and not node.args
        and not node.keywords
        for node in walk(body)
    )


def _where(call: Call) -> str:
    return f"{call.site.scope.name} {call.name}"


def _switches(program: Program) -> Iterator[Call]:
    for call in program.named(*_OFF):
        if call.in_model or call.in_step:
            yield call


def _body_under(call: Call) -> list[ast.stmt]:
    """The statements under a context or of a decorated function."""
    node: ast.AST = call.site.call
    for ancestor in call.site.scope.source.ancestors(node):
        if isinstance(ancestor, ast.With | ast.AsyncWith):
            return ancestor.body
        if isinstance(ancestor, ast.FunctionDef):
            return ancestor.body if node in ancestor.decorator_list else []
        if isinstance(ancestor, ast.stmt):
            return []
    return []


def _passes_model(program: Program, scope: Scope, body: ast.AST) -> bool:
    forwards = {site.call for site in program.work.flow.forwards}
    for node in walk(body):
        if not isinstance(node, ast.Call):
            continue
        if node in forwards:
            return True
        if _runs_module(program, node.func, scope):
            return True
    return False


def _runs_module(program: Program, func: ast.expr, scope: Scope) -> bool:
    """Whether a called expression is a module: one held by `self`, or one that is looped over."""
    value = program.evaluator.value(func, program.evaluator.frame(scope))
    if is_model(program.evaluator, value):
        return True
    if isinstance(func, ast.Subscript):
        return unparse(func).startswith("self.")
    events = scope.events.get(func.id, []) if isinstance(func, ast.Name) else []
    return bool(events) and all(event.kind == "loop" for event in events)


def _detached(now: Program, was: Program) -> Iterator[Violation]:
    if now.objective is not None and was.objective is not None:
        main, held = now.objective.main, was.objective.main
        if has_name(main.core, *_CUTS, "data") and not has_name(held.core, *_CUTS, "data"):
            place = main.place or now.objective.place
            yield _breach("The loss is computed from detached values", place, certain=True)
            return
    for call in added(_cuts_in_model(now), _cuts_in_model(was), key=_where):
        yield _breach("Values inside the model are detached", call.place, _on_the_trunk(now, call))


def _by_data(now: Program, was: Program) -> Iterator[Violation]:
    """`h.data` on the way through the model."""
    for scope, before in changed_methods(now, was):
        if scope.name == "__init__" or any(_reads_data(node) for node in walk(before.node)):
            continue
        for node in walk(scope.node):
            if _reads_data(node):
                what = "Values inside the model are cut off by `.data`"
                yield _breach(what, scope.source.place(node), certain=False)
                return


def _reads_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _cuts_in_model(program: Program) -> Iterator[Call]:
    for call in program.named(*_CUTS):
        if call.in_model and call.site.scope.name != "__init__":
            yield call


def _on_the_trunk(program: Program, call: Call) -> bool:
    """Whether what is detached is a module's output or the input of the whole method."""
    func = call.site.call.func
    base = func.value if isinstance(func, ast.Attribute) else None
    if isinstance(base, ast.Call):
        return _runs_module(program, base.func, call.site.scope)
    parent = call.site.scope.source.parents.get(call.site.call)
    passed = isinstance(parent, ast.Call) and _runs_module(program, parent.func, call.site.scope)
    rebound = (
        isinstance(parent, ast.Assign)
        and isinstance(base, ast.Name)
        and any(isinstance(t, ast.Name) and t.id == base.id for t in parent.targets)
    )
    return passed or rebound


def _given_fewer(now: Program, was: Program) -> Iterator[Violation]:
    made = find_optimizers(now.evaluator, now.work.training)
    before = find_optimizers(was.evaluator, was.work.training)
    if len(made) != 1 or len(before) != 1 or not (made[0].call.args and before[0].call.args):
        return
    node, held = made[0].call.args[0], before[0].call.args[0]
    scope = made[0].frame.scope
    narrowed = narrowing(now.write_out(node, scope), was.write_out(held, before[0].frame.scope))
    if narrowed is not None:
        what = f"The optimizer is given fewer parameters ({narrowed[0]})"
        yield _breach(what, scope.source.place(node), narrowed[1])


def _breach(what: str, place: Place, certain: bool) -> Violation:
    text = f"{what}; the contract holds that every parameter the baseline trains is trained."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
