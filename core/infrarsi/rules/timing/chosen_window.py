"""T312: the times that are shown are those of any step.

Starting the clock after the slow steps, or printing a line only when a step was fast, shows a
window that was chosen. Conditions under which the clock starts and times are printed are compared.
Printing less often is allowed.

Mend it by starting the clock and printing as the baseline does.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.scopes import Guard, Scope, guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.timing.amounts import outputs
from infrarsi.rules.timing.moments import clock_calls, moments
from infrarsi.rules.timing.statistics import limits, on_time
from infrarsi.rules.timing.windows import main_window, windows

CODE = "T312"
_HELD = "the contract holds that a whole run is as fast as the timed steps said"


def find(change: Change) -> Iterator[Violation]:
    """An error where only fast steps are shown or the clock starts later, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _shown(now, was)
    yield from _started(now, was)
    if main_window(was) is None or main_window(now) is not None or not _is_timed(now):
        return
    what = "Nothing that trains is seen between the clock's reads any more"
    if not windows(now):
        what = "What the clock reads around the step is not followed any more"
    yield violation(CODE, f"{what}; {_HELD}.", severity="warning", place=_first_clock(now))


def _shown(now: Program, was: Program) -> Iterator[Violation]:
    """Times that are printed only if they are short."""
    picked = [_picking(now, output.scope, output.call) for output in outputs(now)]
    held = [_picking(was, output.scope, output.call) for output in outputs(was)]
    chosen = [test for test in picked if test is not None]
    if not chosen or not held or any(test is not None for test in held):
        return
    severity: Severity = "error" if len(chosen) == len(picked) else "warning"
    guard, scope = chosen[0]
    assert guard.test is not None
    yield violation(
        CODE,
        f"Times are printed only under `{unparse(guard.test)[:60]}`; {_HELD}.",
        severity=severity,
        place=scope.source.place(guard.test),
    )


def _picking(program: Program, scope: Scope, node: ast.AST) -> tuple[Guard, Scope] | None:
    for guard in guards_around(scope, node):
        if on_time(program, guard, scope):
            return guard, scope
    return None


def _started(now: Program, was: Program) -> Iterator[Violation]:
    """A clock that is started in a later step than before."""
    window, held = main_window(now), main_window(was)
    if window is None or held is None:
        return
    later, before = _first_step(now), _first_step(was)
    if later > before:
        severity: Severity = "error" if before > 0 else "warning"
        yield violation(
            CODE,
            f"The clock starts in step {later:g} instead of {before:g}; {_HELD}.",
            severity=severity,
            place=window.place,
        )


def _first_step(program: Program) -> float:
    """The largest `n` of conditions such as `step >= n` that the clock starts under."""
    window = main_window(program)
    found = [
        limit
        for moment in (window.first if window is not None else ())
        for guard in guards_around(moment.scope, moment.node)
        if guard.test is not None and not _recurs(guard.test)
        for limit in limits(program, [(guard, moment.scope)])
    ]
    return max(found, default=0.0)


def _recurs(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Mod) for node in walk(test))


def _is_timed(program: Program) -> bool:
    return any(moment.role == "clock" for moment in moments(program))


def _first_clock(program: Program) -> Place | None:
    for node in clock_calls(program):
        for file, source in program.project.files.items():
            if node in source.parents:
                return program.project.modules[file].source.place(node)
    return None
