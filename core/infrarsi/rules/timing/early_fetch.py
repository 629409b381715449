"""T302: rows are fetched while the step is timed.

Batches that are fetched, converted or moved before the clock starts cost nothing on paper. The
order of fetching and clock reads is compared. Loader workers and threads that fetch while a step
runs are allowed: their work is in the run, and reading cannot weigh it.

Mend it by fetching between the clock reads, or ahead in a worker.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.rules.change import Change
from infrarsi.rules.timing.outside_turn import inside, outside, where
from infrarsi.rules.timing.windows import main_window

CODE = "T302"
_OVERLAP = ("Thread", "ThreadPoolExecutor", "Stream", "DataLoader", "submit", "Process", "Queue")


def find(change: Change) -> Iterator[Violation]:
    """An error for fetching right before the clock with nothing to overlap, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    window, held = main_window(now), main_window(was)
    if window is None or held is None or not inside(was, held, "fetch"):
        return
    early = outside(now, window, "fetch")
    if not early or outside(was, held, "fetch"):
        return
    at = where(window, early[0])
    in_header = isinstance(early[0].node, ast.For | ast.AsyncFor)
    certain = at.startswith("before") and not in_header and not _overlaps(now)
    severity: Severity = "error" if certain else "warning"
    yield violation(
        CODE,
        f"Rows are fetched {at}; the contract holds that fetching belongs to "
        "the step and happens within it, or overlaps with it.",
        severity=severity,
        place=early[0].place,
        contract_place=held.place,
    )


def _overlaps(program: Program) -> bool:
    return bool(program.called(_OVERLAP))
