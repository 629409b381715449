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
from infrarsi.reading.parts import parts_of
from infrarsi.reading.scopes import Scope
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change

CODE = "L221"
_PICKERS = {"min", "sorted", "median", "nanmedian", "quantile", "amin", "nsmallest", "sort"}
_SHOWN = {"print", "log", "info", "write", "append"}
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
    for call in program.called(_PICKERS):
        if not call.in_model and _is_metric(call.site.call):
            yield call.name, call.place


def _scales(program: Program) -> Iterator[tuple[float, Place]]:
    """Numbers that shown losses are multiplied, divided or shifted by."""
    yield from program.by_file(_bound_scales)
    yield from program.by_file(_printed_scales)


def _bound_scales(program: Program, module: Scope) -> Iterator[tuple[float, Place]]:
    """In what names are bound to that was read out of a tensor."""
    for scope in parts_of(module).scopes.values():
        for name, events in () if _is_module(scope) else scope.events.items():
            if not _weighs(name.rpartition(".")[2].lower()):
                for event in events:
                    if event.value is not None and _is_reading(event.value):
                        yield from _factors(program, scope, event.value)


def _printed_scales(program: Program, module: Scope) -> Iterator[tuple[float, Place]]:
    """In what prints and returns of metrics show."""
    for call in program.calls_of(module):
        if call.name in _SHOWN and not call.is_dead and not call.in_model:
            for argument in call.site.call.args:
                yield from _factors(program, call.site.scope, argument)


def _factors(program: Program, scope: Scope, value: ast.expr) -> Iterator[tuple[float, Place]]:
    for node in walk(value):
        if not isinstance(node, ast.BinOp) or not _is_metric(node):
            continue
        for side in (node.left, node.right):
            number = program.spell(side, scope)
            try:
                yield float(number), scope.source.place(node)
            except ValueError:
                continue


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
