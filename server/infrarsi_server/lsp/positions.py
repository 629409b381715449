r"""Between offsets, places and the client's positions.

Places count lines from 1 and columns from 1 in code points; the protocol counts both from 0 and
columns in the units client and server agreed on (UTF-16 unless said otherwise). Lines end only
at `\n`, `\r\n` and `\r`: `str.splitlines` breaks at a form feed too, which editors do not.
"""

import re
from bisect import bisect_right
from typing import Protocol

from lsprotocol import types

from infrarsi.place import Place

_END_OF_LINE = re.compile(r"\r\n|\n|\r")


class Units(Protocol):
    """The part of pygls's position codec that is needed here."""

    def client_num_units(self, string: str) -> int:
        """How many of the client's units the string takes."""
        ...


class Ruler:
    """The lines of one text, measured in the client's units."""

    def __init__(self, text: str, units: Units) -> None:
        """Find where each line begins and where its text ends."""
        self._text = text
        self._units = units
        ends = list(_END_OF_LINE.finditer(text))
        self._starts = [0, *(match.end() for match in ends)]
        self._stops = [*(match.start() for match in ends), len(text)]

    def position(self, offset: int) -> types.Position:
        """The client's position of an offset in code points, clamped to the text."""
        offset = min(max(offset, 0), len(self._text))
        line = self._line_at(offset)
        stop = min(offset, self._stops[line])
        units = self._units.client_num_units(self._text[self._starts[line] : stop])
        return types.Position(line=line, character=units)

    def offset(self, position: types.Position) -> int:
        """The offset in code points of a client's position, clamped to the line."""
        if position.line >= len(self._starts):
            return len(self._text)
        start, stop = self._starts[position.line], self._stops[position.line]
        left = position.character
        for offset in range(start, stop):
            if left <= 0:
                return offset
            left -= self._units.client_num_units(self._text[offset])
        return stop

    def span(self, start: int, end: int) -> types.Range:
        """The client's range between two offsets in code points."""
        return types.Range(start=self.position(start), end=self.position(end))

    def range_of(self, place: Place) -> types.Range:
        """The client's range of a place; an empty place is widened to one character."""
        start = self.offset_of(place.line, place.column)
        end = self.offset_of(place.end_line, place.end_column)
        return self.span(start, max(end, start + 1))

    def offset_of(self, line: int, column: int) -> int:
        """The offset of a 1-based line and column in code points, clamped to the line."""
        if line > len(self._starts):
            return len(self._text)
        index = max(line, 1) - 1
        return min(self._starts[index] + max(column, 1) - 1, self._stops[index])

    def _line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1
