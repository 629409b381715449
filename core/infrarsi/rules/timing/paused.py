"""T310: what the clock leaves out does no training.

A stopwatch that pauses, or a time that is taken off what was measured, hides whatever happens
meanwhile. Times that are subtracted and were not before are looked for, with what a step does
while they pass.

Mend it by timing without a pause.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.timing.amounts import amounts, outputs
from infrarsi.rules.timing.moments import WORK, Moment, moments

CODE = "T310"
_HELD = "the contract holds that what the clock leaves out does no training"
_TRAINS = (*WORK, "fetch")


def find(change: Change) -> Iterator[Violation]:
    """An error where training falls into a pause that is new, else a warning for the pause."""
    if change.sides is None:
        return
    now, was = change.sides
    held = {role for piece in _pauses(was) for role in {m.role for m in _within(was, piece)}}
    had = bool(_pauses(was))
    if _shows_all(now, 1) and (_shows_all(now, -1) or not _shows_all(was, -1)):
        return
    for node, scope in _pauses(now):
        hidden = [m for m in _within(now, (node, scope)) if m.role not in held]
        if had and not hidden:
            continue
        severity: Severity = "error" if hidden and hidden[0].role != "zero_grad" else "warning"
        what = f"the {hidden[0].role} of a step" if hidden else "some time"
        yield violation(
            CODE,
            f"The clock leaves out {what}: `{unparse(node)[:60]}` is taken off; {_HELD}.",
            severity=severity,
            place=hidden[0].place if hidden else scope.source.place(node),
        )
        return


def _shows_all(program: Program, power: int) -> bool:
    """Whether the whole time (or a rate by it) is printed as well."""
    return any(o.amount.power == power and o.amount.left_out is None for o in outputs(program))


def _pauses(program: Program) -> list[tuple[ast.expr, Scope]]:
    """What is taken off the times that are printed, each once."""
    found = [o.amount.left_out for o in outputs(program) if o.amount.left_out is not None]
    return list({piece[0]: piece for piece in found}.values())


def _within(program: Program, piece: tuple[ast.expr, Scope]) -> list[Moment]:
    """What trains while time passes that is taken off."""
    closed = [a.window for a in amounts(program, *piece) if not a.window.is_open]
    return [
        moment
        for moment in moments(program)
        if moment.role in _TRAINS and any(window.covers(moment.number) for window in closed)
    ]
