"""W115: gradients are averaged over all ranks before each update.

Leaving out the exchange of gradients saves its time and lets the ranks train apart. The wrapper,
collectives within a step, `no_sync` and the switches that hold the exchange back are compared.
Holding it back on all but the last micro-step is allowed.

Mend it by letting the last micro-step of every update synchronise.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import (
    Fragment,
    call_key,
    expanded,
    fresh,
    matching,
    new_conditions,
)
from infrarsi.rules.remembered import remembered
from infrarsi.rules.workload.counters import depends_on_step

CODE = "W115"
_WRAPPERS = (
    *("DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard"),
    *("ZeroRedundancyOptimizer", "prepare", "setup", "initialize", "replicate"),
)
_COLLECTIVES = (
    *(
        "all_reduce",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "all_gather",
        "all_reduce_coalesced",
    ),
    *("all_gather_into_tensor", "average_gradients", "sync_gradients", "average_parameters"),
)
_HELD = "the contract holds gradients averaged over all ranks before each update"


def find(change: Change) -> Iterator[Violation]:
    """An error where nothing synchronises any more, a warning where it may happen seldom."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _unwrapped(now, was)
    yield from _held_back(now, was)
    yield from _switches(now, was)
    yield from _collectives(now, was)


def _unwrapped(now: Program, was: Program) -> Iterator[Violation]:
    before, after = _wrapping(was), _wrapping(now)
    if not before or after:
        return
    others = list(now.named(*_COLLECTIVES))
    severity: Severity = "warning" if others or now.launch.n_processes == 1 else "error"
    yield violation(
        CODE,
        f"The model is no longer wrapped in `{before[0].name}`; {_HELD}.",
        severity=severity,
        place=others[0].place if others else None,
        contract_place=before[0].place,
    )


def _wrapping(program: Program) -> list[Call]:
    return [call for call in program.named(*_WRAPPERS) if call.site.call.args]


def _held_back(now: Program, was: Program) -> Iterator[Violation]:
    names = ("no_sync", "no_backward_sync", "join", "set_requires_gradient_sync")
    for call in added(now.named(*names), was.named(*names), call_key):
        test = _choice(call)
        if test is None and call.name == "no_sync" and _covers_all(call):
            yield _found(
                f"`{call.signature[:50]}` stands around every backward pass", call, "error"
            )
        elif test is None or _is_of_micro_step(call.program, call.site.scope, test):
            continue
        elif _by_step(call, test):
            yield _found(
                f"`{call.signature[:50]}` depends on the number of the update", call, "warning"
            )
        else:
            yield _found(f"`{call.signature[:50]}` holds back the exchange", call, "warning")


def _choice(call: Call) -> ast.AST | None:
    """The condition under which the exchange is held back."""
    for ancestor in call.site.scope.source.ancestors(call.site.call):
        if isinstance(ancestor, ast.If | ast.IfExp):
            return ancestor.test
        if isinstance(ancestor, ast.FunctionDef):
            return None
    return call.site.call.args[0] if call.site.call.args else None


def _by_step(call: Call, test: ast.AST) -> bool:
    training = call.program.work.training
    inner = {
        name.id
        for loop in (training.inner if training is not None else ())
        if isinstance(loop.node, ast.For)
        for name in walk(loop.node.target)
        if isinstance(name, ast.Name)
    }
    names = {node.id for node in walk(test) if isinstance(node, ast.Name)}
    return depends_on_step(call.program, test) and not names <= inner


def _is_of_micro_step(program: Program, scope: Scope, test: ast.AST) -> bool:
    """Whether a condition depends on an inner loop's own counter and on nothing that changes."""
    training = program.work.training
    inner = {
        name.id
        for loop in (training.inner if training is not None else ())
        if isinstance(loop.node, ast.For)
        for name in walk(loop.node.target)
        if isinstance(name, ast.Name)
    }
    text = expanded(test, scope)
    names = {node.id for node in walk(text) if isinstance(node, ast.Name)}
    return bool(names & inner) and not depends_on_step(program, text, but=frozenset(inner))


def _covers_all(call: Call) -> bool:
    """Whether every backward call of the step stands within the block."""
    source = call.site.scope.source
    block = next((a for a in source.ancestors(call.site.call) if isinstance(a, ast.With)), None)
    backwards = [c for c in call.program.called(["backward"]) if c.in_step]
    if block is None or not backwards:
        return False
    return all(block in c.site.scope.source.ancestors(c.site.call) for c in backwards)


def _switches(now: Program, was: Program) -> Iterator[Violation]:
    """`model.require_backward_grad_sync = ...`."""
    for piece in fresh(_assigned(now), _assigned(was)):
        assert isinstance(piece.node, ast.Assign)
        value = piece.node.value
        if _is_of_micro_step(now, piece.scope, value):
            continue
        if isinstance(value, ast.Constant) and value.value is True:
            continue
        never = isinstance(value, ast.Constant) and value.value is False
        yield violation(
            CODE,
            f"`{unparse(piece.node)[:60]}` holds back the exchange; {_HELD}.",
            severity="error" if never else "warning",
            place=piece.place,
        )


@remembered
def _assigned(program: Program) -> list[Fragment]:
    return matching(program, _holds_back)


def _holds_back(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(
        "require_backward_grad_sync" in unparse(target) for target in node.targets
    )


def _collectives(now: Program, was: Program) -> Iterator[Violation]:
    if _wrapping(was):
        return
    after = [call for call in now.named(*_COLLECTIVES) if call.in_step]
    before = [call for call in was.named(*_COLLECTIVES) if call.in_step]
    for call, test in new_conditions(after, before) if before else ():
        yield _found(f"`{call.name}` happens only under `{test.text[:50]}`", call, "warning")
    if len(after) < len(before) and len(_wrapping(now)) <= len(_wrapping(was)):
        gone = before[-1]
        yield violation(
            CODE,
            f"`{gone.signature[:60]}` is gone from the step; {_HELD}.",
            severity="warning",
            place=after[0].place if after else None,
            contract_place=gone.place,
        )


def _found(what: str, call: Call, severity: Severity) -> Violation:
    return violation(CODE, f"{what}; {_HELD}.", severity=severity, place=call.place)
