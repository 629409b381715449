"""T308: the device is waited for before the clock is read.

Kernels are launched and run later. Without a synchronisation before the second read only the time
to launch them is measured. Synchronising calls within what is timed are compared. Timing a whole
window of steps needs none in every step, so taking it out there is allowed.

Mend it by synchronising before the clock is read, or by timing several steps at once.
"""

from collections.abc import Iterator

from infrarsi.contract import Fix, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.edits import Edit
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.rules.change import Change
from infrarsi.rules.timing.moments import Moment, clock_calls, moments
from infrarsi.rules.timing.windows import Window, main_window

CODE = "T308"
_EXPLICIT = {"synchronize", "mark_step"}


def find(change: Change) -> Iterator[Violation]:
    """An error where nothing in a timed step waits for the device any more."""
    if change.sides is None:
        return
    now, was = change.sides
    window, held = main_window(now), main_window(was)
    if window is None or held is None or window.spans_steps or _by_device(now, window):
        return
    before = [m for m in _before_read(was, held) if _is_explicit(was, m)]
    if not before or _before_read(now, window):
        return
    text = was.spell(before[-1].node, before[-1].scope)
    yield violation(
        CODE,
        f"`{text[:60]}` before the clock read is gone, and nothing else waits for the device; the "
        "contract holds that it is synchronised where the baseline does it.",
        place=window.place,
        contract_place=before[-1].place,
        fixes=tuple(_again(change, window, text)),
    )


def _by_device(program: Program, window: Window) -> bool:
    """Whether the device itself takes the times."""
    return all("Event" in clock_calls(program)[node] for node in window.ends)


def _before_read(program: Program, window: Window) -> list[Moment]:
    """What waits for the device after the last work that is timed."""
    work = [
        m.number
        for m in moments(program)
        if m.role in {"backward", "step"} and window.covers(m.number)
    ]
    since = max(work, default=-1)
    last = max((m.number for m in window.last), default=len(moments(program)))
    return [m for m in moments(program) if m.role == "sync" and since < m.number <= last]


def _is_explicit(program: Program, moment: Moment) -> bool:
    """Whether it does nothing but wait; on a CPU there is nothing to wait for."""
    func = getattr(moment.node, "func", None)
    name = getattr(func, "attr", getattr(func, "id", ""))
    text = program.spell(moment.node, moment.scope)
    return name in _EXPLICIT and not text.startswith("torch.cpu.")


def _again(change: Change, window: Window, text: str) -> Iterator[Fix]:
    """The call in a line of its own before the statement that reads the clock."""
    last = window.last
    if not last:
        return
    source = last[-1].scope.source
    place: Place = source.place(source.statement(last[-1].node))
    whole = change.sources.text(place.file)
    if whole is None:
        return
    lines = whole.splitlines(keepends=True)
    indent = lines[place.line - 1][: place.column - 1]
    if indent.strip():
        return
    start = sum(len(line) for line in lines[: place.line - 1])
    edit = Edit(file=place.file, start=start, old="", new=f"{indent}{text}\n")
    yield Fix(title="Wait for the device again", edits=(edit,))
