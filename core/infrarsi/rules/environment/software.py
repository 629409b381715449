"""E502: Python and torch keep their versions.

Another version of the framework may be faster for reasons of its own; a comparison across
versions says nothing about the change. Files that pin versions are compared, and installing,
switching or re-routing packages from code is looked for.

Mend it by restoring the pins. To move to another version, measure the baseline again under it.
"""

import re
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import call_key

CODE = "E502"
_PINS = re.compile(
    r"(^|/)(requirements[\w.-]*\.txt|[\w.-]*environment\.ya?ml|[\w.-]+\.lock|\.python-version)$"
)
_INSTALLS = re.compile(r"\b(pip|pip3|conda|uv|mamba|apt|apt-get)\b[\"', ]+.*\b(install|sync|add)\b")


def find(change: Change) -> Iterator[Violation]:
    """An error for another pinned version and for packages installed by the job."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _pins(now, was)
    for call in added(_installs(now), _installs(was), call_key):
        yield violation(
            CODE,
            f"The job installs packages itself (`{call.signature[:60]}`); the contract holds the "
            "software of the calibration.",
            place=call.place,
        )


def _pins(now: Program, was: Program) -> Iterator[Violation]:
    for path in now.sources.paths():
        if not _PINS.search(path):
            continue
        after, before = now.sources.text(path), was.sources.text(path)
        if after is None or before is None or after == before:
            continue
        held = {line.strip() for line in before.splitlines()}
        for number, line in enumerate(after.splitlines(), 1):
            text = line.strip()
            if text and not text.startswith("#") and text not in held:
                yield violation(
                    CODE,
                    f"`{text[:60]}` pins other software; the contract holds the software of the "
                    "calibration.",
                    place=_line(path, number, line),
                )
                break


def _line(path: str, number: int, line: str) -> Place:
    return Place(
        file=path, line=number, column=1, end_line=number, end_column=len(line.rstrip()) + 1
    )


def _installs(program: Program) -> list[Call]:
    names = {"run", "call", "check_call", "check_output", "Popen", "system", "main", "popen"}
    return [
        call
        for call in program.called(names)
        if not call.is_dead and _INSTALLS.search(call.signature)
    ]
