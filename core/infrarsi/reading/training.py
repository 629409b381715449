"""The training loop, found by what happens in it: a backward call, and an optimizer step around.

Names of loops and functions play no role. What is called within one step, also through functions
of the workspace, is the step's region; code under `no_grad` is left out of it.
"""

import ast
import math
from dataclasses import dataclass

from infrarsi.reading.attached import attached
from infrarsi.reading.cadence import Condition, conditions_between, is_last_pass
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.half_typed import HALF_TYPED
from infrarsi.reading.parts import CallSite, span
from infrarsi.reading.scopes import Scope, dotted, guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import FunctionValue, Instance, Known, Made, Value

LoopNode = ast.For | ast.AsyncFor | ast.While
_MAX_HOPS = 4


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop statement and the scope it is written in."""

    scope: Scope
    node: LoopNode


@dataclass(frozen=True, eq=False)
class Training:
    """The training loop and what runs within one step.

    `update` makes one optimizer step a pass (None where no loop was found); `inner` are the
    loops between it and the backward call, innermost first, `outer` those around it.
    `conditions` decide in which passes the optimizer steps.
    """

    backward: CallSite
    steps: tuple[CallSite, ...]
    update: Loop | None
    inner: tuple[Loop, ...]
    blocks: tuple[tuple[Scope, ast.AST], ...]
    calls: tuple[CallSite, ...]
    conditions: tuple[Condition, ...] = ()
    outer: tuple[Loop, ...] = ()

    def holds(self, scope: Scope, node: ast.AST) -> bool:
        """Whether a node runs within a step."""
        return any(_inside(scope, node, where, block) for where, block in self.blocks)


def find_training(evaluator: Evaluator) -> Training | None:
    """The backward call with an optimizer step around it, else the first backward call.

    Where several loops train (a warm-up before the training), the longest is meant, by what its
    bound says; the first of those whose bound says nothing.
    """
    named = evaluator.project.calls_by_name
    backwards = [site for site in named.get("backward", []) if _is_backward(site)]
    steps = [site for site in named.get("step", []) if _steps_optimizer(evaluator, site)]
    found = [_around(evaluator, site, steps) for site in backwards]
    updating = [training for training in found if training.update is not None]
    if updating:
        if len(updating) == 1:
            return updating[0]
        return max(updating, key=lambda training: _n_passes(evaluator, training.update))
    return next(iter(found), None)


def _n_passes(evaluator: Evaluator, loop: Loop | None) -> float:
    """The number of passes of a counting loop, without a limit where it is not known."""
    match loop.node if loop is not None else None:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[*_, last] as bounds)):
            bound = last if len(bounds) < 3 else bounds[1]
            value = evaluator.value(bound, evaluator.frame(loop.scope)) if loop else None
            number = value.value if isinstance(value, Known) else None
            return number if isinstance(number, int | float) else math.inf
        case _:
            return math.inf


def is_module_class(evaluator: Evaluator, value: Value) -> bool:
    """Whether a class of the workspace is a torch module."""
    scope = value.of.scope if isinstance(value, Instance) else None
    node = scope.node if scope is not None else None
    if not isinstance(node, ast.ClassDef):
        return False
    names = {unparse(base).rpartition(".")[2] for base in node.bases}
    if names & {"Module", "LightningModule", "PreTrainedModel", "Sequential"}:
        return True
    if HALF_TYPED in names:
        return any(getattr(method, "name", "") == "forward" for method in node.body)
    closure = value.of.closure if isinstance(value, Instance) else None
    if closure is None:
        return False
    for base in node.bases:
        parent = evaluator.value(base, closure)
        scope_of = getattr(parent, "scope", None)
        if scope_of is not None and scope_of is not scope and hasattr(parent, "closure"):
            return is_module_class(evaluator, Instance(parent))  # type: ignore[arg-type]
    return False


def _around(evaluator: Evaluator, backward: CallSite, steps: list[CallSite]) -> Training:
    nest = _nest(evaluator, backward)
    for number, loop in enumerate(nest):
        inside = tuple(step for step in steps if _covers(evaluator, loop, step))
        if inside and not _only_last(evaluator, loop, nest[number + 1 :], inside):
            blocks = _blocks(evaluator, loop)
            calls = tuple(
                site for site in evaluator.project.inside(blocks) if not _without_gradient(site)
            )
            conditions = _conditions(evaluator, loop, tuple(nest[:number]), inside)
            inner, outer = tuple(nest[:number]), tuple(nest[number + 1 :])
            return Training(backward, inside, loop, inner, blocks, calls, conditions, outer)
    return Training(backward, (), None, tuple(nest), (), ())


def _only_last(
    evaluator: Evaluator, loop: Loop, outer: list[Loop], steps: tuple[CallSite, ...]
) -> bool:
    """Whether the step happens on a loop's last pass only: then the loop around it updates."""
    conditions = conditions_between(evaluator, loop.node, steps[0])
    return bool(outer) and any(is_last_pass(condition, loop.node) for condition in conditions)


def _conditions(
    evaluator: Evaluator, loop: Loop, inner: tuple[Loop, ...], steps: tuple[CallSite, ...]
) -> tuple[Condition, ...]:
    """What decides whether a pass steps, other than being an inner loop's last."""
    return tuple(
        condition
        for condition in conditions_between(evaluator, loop.node, steps[0])
        if not any(is_last_pass(condition, inside.node) for inside in inner)
    )


def _is_backward(site: CallSite) -> bool:
    if site.name != "backward" or not isinstance(site.call.func, ast.Attribute):
        return False
    return all(scope.name != "backward" for scope in site.scope.around())


def _steps_optimizer(evaluator: Evaluator, site: CallSite) -> bool:
    if not isinstance(site.call.func, ast.Attribute):
        return False
    guards = guards_around(site.scope, site.call)
    if guards and evaluator.hold(guards, evaluator.frame(site.scope)) is False:
        return False
    receiver = site.call.func.value
    value = evaluator.value(receiver, evaluator.frame(site.scope))
    if isinstance(value, Made):
        callee = value.callee
        if "lr_scheduler" in callee or "profiler" in callee:
            return False
        if ".optim" in callee or "optim." in callee or callee.endswith("GradScaler"):
            return True
        if callee.endswith("DeepSpeedEngine"):
            return True
    name = _spelling(receiver, site.scope).lower()
    if "sched" in name or "prof" in name:
        return False
    return "opt" in name or "scaler" in name or "engine" in name


def _spelling(receiver: ast.expr, scope: Scope) -> str:
    """The receiver's name; of a loop's variable also what it runs over."""
    name = dotted(receiver) or unparse(receiver)
    over = [e.value for e in scope.events.get(name, []) if e.kind == "loop" and e.value is not None]
    return " ".join([name, *(unparse(value) for value in over)])


def _nest(evaluator: Evaluator, site: CallSite) -> list[Loop]:
    """The loops around a call, innermost first, on through the calls of its function."""
    loops: list[Loop] = []
    node, scope = site.call, site.scope
    for _ in range(_MAX_HOPS):
        for ancestor in scope.source.ancestors(node):
            if ancestor is scope.node:
                break
            if isinstance(ancestor, LoopNode):
                loops.append(Loop(scope, ancestor))
        if isinstance(scope.node, ast.Module):
            break
        sites = [s for s in evaluator.call_sites(scope) if s.scope is not scope]
        if not sites:
            break
        looped = [s for s in sites if _in_loop(s)]
        node, scope = (looped or sites)[0].call, (looped or sites)[0].scope
    return loops


def _in_loop(site: CallSite) -> bool:
    for ancestor in site.scope.source.ancestors(site.call):
        if ancestor is site.scope.node:
            return False
        if isinstance(ancestor, LoopNode):
            return True
    return False


def _covers(evaluator: Evaluator, loop: Loop, site: CallSite, hops: int = 0) -> bool:
    if _inside(site.scope, site.call, loop.scope, loop.node):
        return True
    if hops >= _MAX_HOPS or isinstance(site.scope.node, ast.Module | ast.ClassDef):
        return False
    callers = [s for s in evaluator.call_sites(site.scope) if s.scope is not site.scope]
    return any(_covers(evaluator, loop, caller, hops + 1) for caller in callers)


def _inside(scope: Scope, node: ast.AST, where: Scope, block: ast.AST) -> bool:
    """Whether a node stands in a block (a loop or a function), by place."""
    if scope.source is not where.source:
        return False
    start, end = span(block)
    first, last = span(node)
    return start <= first and last <= end


def _blocks(evaluator: Evaluator, loop: Loop) -> tuple[tuple[Scope, ast.AST], ...]:
    """The loop and the bodies of the workspace's functions it calls."""
    blocks: list[tuple[Scope, ast.AST]] = [(loop.scope, loop.node)]
    for where, block in blocks:
        if len(blocks) > 50:
            break
        for site in evaluator.project.inside([(where, block)]):
            if _without_gradient(site):
                continue
            callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
            if not isinstance(callee, FunctionValue) or _decorated_without_gradient(callee.scope):
                continue
            known = any(callee.scope.node is node for _, node in blocks)
            of_module = callee.this is not None and is_module_class(evaluator, callee.this)
            if not known and not of_module:
                blocks.append((callee.scope, callee.scope.node))
    return tuple(blocks)


@attached
def _without_gradient(site: CallSite) -> bool:
    """Whether the call stands under `with torch.no_grad()`."""
    for ancestor in site.scope.source.ancestors(site.call):
        if isinstance(ancestor, ast.With | ast.AsyncWith) and any(
            "no_grad" in unparse(item.context_expr)
            or "inference_mode" in unparse(item.context_expr)
            for item in ancestor.items
        ):
            return True
    return False


def _decorated_without_gradient(scope: Scope) -> bool:
    node = scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    texts = [unparse(decorator) for decorator in node.decorator_list]
    return any("no_grad" in text or "inference_mode" in text for text in texts)
