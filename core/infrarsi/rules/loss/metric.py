"""L221: what is printed as loss or metric is computed as in the baseline.

A smoothed, smallest or scaled loss looks better than it is. Leaving a log line out, or reading
the value less often, is fine.

Mend it by printing the mean loss as before.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import walk
from infrarsi.rules.change import Change

CODE = "L221"
_PICKERS = {"min", "sorted", "median", "nanmedian", "quantile", "amin", "nsmallest", "sort"}
_HARMLESS = {0, 1, 1000, 1e6, 1e-6, 1e-9, 1e9, 2}


def find(change: Change) -> Iterator[Violation]:
    """A warning where a printed loss is picked, smoothed or scaled as it was not before."""
    if change.sides is None:
        return
    now, was = change.sides
    pickers = {name for name, _ in _pickers(was)}
    for name, place in _pickers(now):
        if name not in pickers:
            yield _warn(f"`{name}` picks among the losses that are shown", place)
            return
    held = {number for number, _ in _scales(was)} | _groupings(change)
    for number, place in _scales(now):
        if number not in held:
            yield _warn(f"A shown loss is computed with {number:g}, as it was not before", place)
            return


def _groupings(change: Change) -> set[float]:
    names = ("accumulation", "micro_batch", "world_size", "global_batch", "seq_len")
    counts = [change.count(change.fact(name)) for name in names]
    counts += [change.count(change.fact("tokens_per_step"))]
    return {float(count) for count in counts if count} | {float(n) for n in _HARMLESS}


def _pickers(program: Program) -> Iterator[tuple[str, Place]]:
    for call in program.calls:
        if call.name in _PICKERS and not call.in_model and _is_metric(call.site.call):
            yield call.name, call.place


def _scales(program: Program) -> Iterator[tuple[float, Place]]:
    """Numbers that shown losses are multiplied, divided or shifted by."""
    for scope, value in _shown(program):
        for node in walk(value):
            if not isinstance(node, ast.BinOp) or not _is_metric(node):
                continue
            for side in (node.left, node.right):
                number = program.spell(side, scope)
                try:
                    yield float(number), scope.source.place(node)
                except ValueError:
                    continue


def _shown(program: Program) -> Iterator[tuple[Scope, ast.expr]]:
    """What prints and returns of metrics show, and what their names are bound to."""
    scopes = [scope for scope in program.project.scopes.values() if not _is_module(scope)]
    for scope in scopes:
        for name, events in scope.events.items():
            if not _weighs(name.rpartition(".")[2].lower()):
                yield from (
                    (scope, event.value)
                    for event in events
                    if event.value is not None and _is_reading(event.value)
                )
    for call in program.named("print", "log", "info", "write", "append"):
        if not call.in_model:
            yield from ((call.site.scope, argument) for argument in call.site.call.args)


def _is_module(scope: Scope) -> bool:
    return isinstance(scope.node, ast.ClassDef) or scope.name == "forward"


def _weighs(name: str) -> bool:
    return "coef" in name or "weight" in name or "scale" in name or "interval" in name


def _is_reading(value: ast.expr) -> bool:
    """Whether a value was read out of a tensor; what stays on the way to backward is not."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in {"item", "detach", "tolist"}
        for node in walk(value)
    )


def _is_metric(node: ast.AST) -> bool:
    for inner in walk(node):
        name = inner.id if isinstance(inner, ast.Name) else getattr(inner, "attr", "")
        if "loss" in str(name).lower():
            return True
    return False


def _warn(what: str, place: Place) -> Violation:
    text = f"{what}; the contract holds the baseline's way of showing them."
    return violation(CODE, text, severity="warning", place=place)
