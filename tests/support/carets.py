"""Caret fixtures: a text with its findings drawn under the lines they stand on.

MICRO = 4
        ^ W101
"""

import re
from collections.abc import Iterable

from infrarsi.contract import Violation

_MARK = re.compile(r"^(?P<indent>[ ]*)(?P<carets>\^+) (?P<code>[A-Z]\d{3})$")


def split_carets(marked: str) -> tuple[str, set[tuple[str, int, int, int]]]:
    """The text without its marks, and the marks as (code, line, column, end column)."""
    lines: list[str] = []
    marks: set[tuple[str, int, int, int]] = set()
    for line in marked.splitlines():
        mark = _MARK.match(line)
        if mark is None:
            lines.append(line)
            continue
        start = len(mark["indent"]) + 1
        marks.add((mark["code"], len(lines), start, start + len(mark["carets"])))
    return "\n".join(lines) + "\n", marks


def marks_of(violations: Iterable[Violation], file: str) -> set[tuple[str, int, int, int]]:
    """The findings of one file in the same form."""
    return {
        (v.code, v.place.line, v.place.column, v.place.end_column)
        for v in violations
        if v.place is not None and v.place.file == file
    }
