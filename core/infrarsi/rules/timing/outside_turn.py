"""T301: all of a step's work is timed.

Where the second clock read moves above the update, or the first one below the forward pass, the
number that is printed leaves work out. The order of clock reads and of what trains is compared,
functions entered.

Mend it by reading the clock before the step's first work and after its last.
"""

from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.rules.change import Change
from infrarsi.rules.timing.moments import WORK, Moment, moments
from infrarsi.rules.timing.windows import Window, main_window

CODE = "T301"
_WHAT = {
    "forward": "The forward pass",
    "backward": "Backward",
    "clip": "Clipping",
    "step": "The optimizer's step",
    "scheduler": "The scheduler's step",
    "zero_grad": "Clearing gradients",
}
_MINOR = {"scheduler", "zero_grad"}


def find(change: Change) -> Iterator[Violation]:
    """An error for passes and updates that are timed no more, a warning for minor work."""
    if change.sides is None:
        return
    now, was = change.sides
    window, held = main_window(now), main_window(was)
    if window is None or held is None:
        return
    again = window.restarts
    if again is not None and held.restarts is None:
        yield violation(
            CODE,
            "The clock starts anew in every micro-step and is read once a step; the contract holds "
            "that all work of a step is done while it is timed.",
            place=again.place,
            contract_place=held.place,
        )
    for role in WORK:
        left_out = outside(now, window, role)
        if left_out and not outside(was, held, role) and inside(was, held, role):
            severity: Severity = "warning" if role in _MINOR else "error"
            yield violation(
                CODE,
                f"{_WHAT[role]} runs {where(window, left_out[0])}; the contract holds that all "
                "work of a step is done while it is timed.",
                severity=severity,
                place=left_out[0].place,
                contract_place=held.place,
            )


def outside(program: Program, window: Window, role: str) -> list[Moment]:
    """The moments of a role that are not timed."""
    return [m for m in moments(program) if m.role == role and not window.covers(m.number)]


def inside(program: Program, window: Window, role: str) -> list[Moment]:
    """The moments of a role that are timed."""
    return [m for m in moments(program) if m.role == role and window.covers(m.number)]


def where(window: Window, moment: Moment) -> str:
    """On which side of the clock reads a moment is."""
    begin = min((m.number for m in window.first), default=0)
    if moment.number < begin and not window.is_open:
        return "before the first clock read"
    return "after the second clock read"
