"""T303: a step's work ends with the step.

A thread, a future, a stream or a collective that is started in a step and not waited for works on
while the clock stands or the other side is timed. Starting them is looked for where it was not
before. Threads that only load data are allowed, and so is what is joined in the same step.

Mend it by waiting for the work before the step ends.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import FunctionValue
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee, keywords
from infrarsi.rules.remembered import remembered

CODE = "T303"
_HELD = "the contract holds that a step's work ends with the step"
_STARTS = {
    *("Thread", "Timer", "submit", "create_task", "ensure_future", "run_in_executor", "to_thread"),
    *("start_new_thread", "apply_async", "map_async", "run_coroutine_threadsafe", "call_soon"),
    *("fork", "Process", "start_processes", "spawn", "Popen", "ThreadPoolExecutor"),
    *("ThreadPool", "call_later", "starmap_async", "imap_unordered", "imap"),
}
_WAITS = {
    "join",
    "result",
    "wait",
    "wait_stream",
    "wait_event",
    "synchronize",
    "shutdown",
    "gather",
}
_TRAINS = {"backward", "optimizer step", "clip_grad_norm_", "run_backward", "all_reduce"}
_OWNED = {"fork", "spawn", "Process", "Timer", "imap", "call_soon", "call_later"}
_LOADS = {
    *("get", "put", "next", "next_batch", "get_batch", "pin_memory", "from_numpy", "__getitem__"),
    *("fetch", "load", "read", "memmap", "batch", "next_batches", "iter", "sample", "tensor"),
    *("__next__", "stack", "collate", "cpu"),
}


def find(change: Change) -> Iterator[Violation]:
    """An error for training handed to a thread that nobody joins, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    joined = _waits(now) - _waits(was)
    for call in added(_starts(now), _starts(was), callee):
        kind = _what(now, call)
        if kind == "data":
            continue
        severity: Severity = "error" if kind == "training" and joined <= 0 else "warning"
        what = "a step's training" if kind == "training" else "work"
        yield violation(
            CODE,
            f"`{call.signature[:60]}` starts {what} beside the step; {_HELD}.",
            severity=severity,
            place=call.place,
        )
    yield from _collectives(now, was, joined)
    yield from _streams(now, was, joined)


def _collectives(now: Program, was: Program, joined: int) -> Iterator[Violation]:
    """Collectives that are asynchronous, more of them than are waited for."""
    fresh = list(added(_asynchronous(now), _asynchronous(was), callee))
    for call in fresh[max(joined, 0) :]:
        yield violation(
            CODE,
            f"`{call.signature[:60]}` is not waited for; {_HELD}.",
            severity="warning",
            place=call.place,
        )


def _streams(now: Program, was: Program, joined: int) -> Iterator[Violation]:
    for call in added(now.named("Stream"), was.named("Stream"), callee):
        if joined <= 0 and call.callee.startswith("torch"):
            yield violation(
                CODE,
                f"A step's work on `{call.signature[:60]}` is not waited for; {_HELD}.",
                severity="warning",
                place=call.place,
            )


@remembered
def _starts(program: Program) -> list[Call]:
    return [
        call
        for call in program.called(_STARTS)
        if not call.is_dead
        and _entered(program, call.site.call.func, call) is None
        and (call.name not in _OWNED or "." in call.callee)
    ]


def _asynchronous(program: Program) -> list[Call]:
    return [
        call
        for call in program.called({"all_reduce", "reduce_scatter_tensor", "broadcast", "reduce"})
        if keywords(call).get("async_op") == "True"
    ]


def _waits(program: Program) -> int:
    return len([call for call in program.called(_WAITS) if not _joins_text(call)])


def _joins_text(call: Call) -> bool:
    """`" ".join(parts)` and `os.path.join(a, b)` wait for nothing."""
    func = call.site.call.func
    if call.name != "join" or not isinstance(func, ast.Attribute):
        return False
    return bool(call.site.call.args) or isinstance(func.value, ast.Constant)


def _what(program: Program, call: Call) -> str:
    """What a started function does: "training", "data" or "unknown"."""
    given = [*call.site.call.args, *(keyword.value for keyword in call.site.call.keywords)]
    scopes = [scope for node in given if (scope := _entered(program, node, call)) is not None]
    methods = {node.attr for node in given if isinstance(node, ast.Attribute)}
    if not scopes and not methods & {"step", "backward"}:
        if call.name in {"ThreadPoolExecutor", "ThreadPool"}:
            return "data"
        return "data" if _loads(unparse(call.site.call)) else "unknown"
    names = {
        "optimizer step"
        for node in given
        if isinstance(node, ast.Attribute) and node.attr in {"step", "backward"}
    }
    for scope in scopes:
        names |= _called_in(program, scope)
    if names & _TRAINS:
        return "training"
    return "data" if names & _LOADS else "unknown"


def _loads(text: str) -> bool:
    words = ("loader", "batch", "prefetch", "data", "queue", "reader", "fetch")
    return any(word in text.lower() for word in words)


def _entered(program: Program, node: ast.expr, call: Call) -> Scope | None:
    if not isinstance(node, ast.Name | ast.Attribute | ast.Lambda):
        return None
    value = program.evaluator.value(node, call.frame)
    return value.scope if isinstance(value, FunctionValue) else None


def _called_in(program: Program, scope: Scope, depth: int = 0) -> set[str]:
    """The last names of what a function calls, functions of the workspace entered."""
    found: set[str] = set()
    for node in walk(scope.node):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        updates = name == "step" and "opt" in unparse(node.func).lower()
        found.add("optimizer step" if updates else name)
        frame = program.evaluator.frame(scope)
        value = program.evaluator.value(node.func, frame) if depth < 3 else None
        inner = value.scope if isinstance(value, FunctionValue) else scope
        if inner is not scope and isinstance(inner.node, Function):
            found |= _called_in(program, inner, depth + 1)
    return found
