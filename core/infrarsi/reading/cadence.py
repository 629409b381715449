"""When the optimizer steps: the conditions between a loop and the step call in it."""

import ast
from dataclasses import dataclass

from infrarsi.reading.calls import argument_of
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Guard, Scope, guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.reading.walking import walk


@dataclass(frozen=True, eq=False)
class Condition:
    """A test the step stands under, where it is written, and which way it must go."""

    test: ast.expr
    scope: Scope
    holds: bool


def conditions_between(
    evaluator: Evaluator, loop: ast.AST, site: CallSite, hops: int = 0
) -> list[Condition]:
    """The tests between a loop and a call in it, on through the calls of its function.

    A test that is a bare name is replaced by what the name stands for.
    """
    scope = site.scope
    guards = guards_around(scope, site.call)
    ancestors = list(scope.source.ancestors(site.call))
    if loop in ancestors:
        inside = {id(node) for node in ancestors[: ancestors.index(loop)]}
        guards = [g for g in guards if g.test and id(scope.source.parents[g.test]) in inside]
    found = [_resolved(evaluator, guard, scope) for guard in guards]
    conditions = [condition for condition in found if condition is not None]
    if loop in ancestors or hops > 3:
        return conditions
    callers = [s for s in evaluator.call_sites(scope) if s.scope is not scope]
    for caller in callers[:1]:
        conditions += conditions_between(evaluator, loop, caller, hops + 1)
    return conditions


def divisor(condition: Condition) -> ast.expr | None:
    """The `n` of `(i + 1) % n == 0`."""
    for node in walk(condition.test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return node.right
    return None


def is_last_pass(condition: Condition, loop: ast.AST) -> bool:
    """Whether a condition is true on the last pass of a counting loop: `i == n - 1`."""
    match loop:
        case ast.For(
            target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[count])
        ):
            pass
        case _:
            return False
    test = condition.test
    if not condition.holds or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if not isinstance(test.ops[0], ast.Eq):
        return False
    sides = {_spelled(test.left), _spelled(test.comparators[0])}
    n = _spelled(count)
    return sides in ({counter, f"{n} - 1"}, {f"{counter} + 1", n})


def always(evaluator: Evaluator, condition: Condition) -> bool:
    """Whether a condition surely lets the step happen."""
    guard = Guard(condition.test, holds=condition.holds)
    return evaluator.hold([guard], evaluator.frame(condition.scope)) is True


def _resolved(evaluator: Evaluator, guard: Guard, scope: Scope) -> Condition | None:
    if guard.test is None:
        return None
    test, holds = guard.test, guard.holds
    for _ in range(4):
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, holds = test.operand, not holds
        elif isinstance(test, ast.Name):
            behind = _behind(evaluator, test, scope)
            if behind is None:
                break
            test, scope = behind
        else:
            break
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq) and not holds:
        test = ast.Compare(test.left, [ast.Eq()], test.comparators)
        holds = True
    return Condition(test, scope, holds)


def _behind(evaluator: Evaluator, name: ast.Name, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """The expression a name stands for: its only binding, or the only call's argument."""
    if isinstance(evaluator.value(name, evaluator.frame(scope)), Known):
        return None
    events = scope.events.get(name.id, [])
    if len(events) != 1:
        return None
    if events[0].kind == "assign" and events[0].value is not None and not events[0].path:
        return events[0].value, scope
    if events[0].kind == "parameter":
        sites = evaluator.call_sites(scope)
        argument = argument_of(evaluator, sites[0], scope, name.id) if len(sites) == 1 else None
        if argument is not None:
            return argument.expression, argument.frame.scope
    return None


def _spelled(node: ast.expr) -> str:
    return unparse(node)
