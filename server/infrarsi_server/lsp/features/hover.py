"""Hover on a knob where it is set: what each value would give, and the contract's clause."""

import re
from dataclasses import dataclass

from lsprotocol import types

from infrarsi.contract import Fact, Lock
from infrarsi.knobs import Binding, Knob
from infrarsi.place import Place
from infrarsi_server.lsp.features.actions import current_analysis
from infrarsi_server.lsp.features.predictions import look_up_numbers
from infrarsi_server.lsp.hover_text import fact_text, knob_text
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.positions import Ruler
from infrarsi_server.lsp.to_lsp import path_of
from infrarsi_server.session import Analysis

_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, kw_only=True)
class _Bound:
    """A knob at the place that sets it, and the lock of its job."""

    lock: Lock
    knob: Knob
    binding: Binding
    place: Place


@dataclass(frozen=True, kw_only=True)
class _Held:
    """A fact the contract holds, where it was read."""

    lock: Lock
    fact: Fact
    place: Place


def register(server: InfraRSIServer) -> None:
    """Answer hovers."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: InfraRSIServer, params: types.HoverParams) -> types.Hover | None:
        path = path_of(params.text_document.uri)
        analysis = None if path is None else await current_analysis(ls, path)
        if path is None or analysis is None:
            return None
        file = path.relative_to(analysis.snapshot.root).as_posix()
        text = analysis.texts.get(file)
        if text is None:
            return None
        pointer = _Pointer(file, text, Ruler(text, ls.workspace.position_codec), params.position)
        found = _bound_at(analysis, pointer) or _held_at(analysis, pointer)
        return None if found is None else await _answer(ls, found, pointer)


class _Pointer:
    """Where the person points: an offset in one file, and the word there."""

    def __init__(self, file: str, text: str, ruler: Ruler, position: types.Position) -> None:
        self.file = file
        self.ruler = ruler
        self.offset = ruler.offset(position)
        words = (m for m in _WORD.finditer(text) if m.start() <= self.offset < m.end())
        self.word = next((match[0] for match in words), "")

    def is_inside(self, place: Place | None) -> bool:
        """Whether it points into a place."""
        if place is None or place.file != self.file:
            return False
        start = self.ruler.offset_of(place.line, place.column)
        return start <= self.offset < self.ruler.offset_of(place.end_line, place.end_column)

    def is_name_of(self, binding: Binding) -> bool:
        """Whether it points at the knob's name on the line that sets it."""
        place = binding.place
        if place is None or place.file != self.file:
            return False
        start = self.ruler.offset_of(place.line, 1)
        is_on_line = start <= self.offset < self.ruler.offset_of(place.line, place.column)
        return is_on_line and self.word.strip("-") == binding.name.strip("-")


def _bound_at(analysis: Analysis, pointer: _Pointer) -> _Bound | None:
    for job in analysis.jobs:
        for knob in job.reading.knobs:
            for binding in knob.bindings:
                place = binding.place
                hit = pointer.is_inside(place) or pointer.is_name_of(binding)
                if place is not None and hit:
                    return _Bound(lock=job.lock, knob=knob, binding=binding, place=place)
    return None


def _held_at(analysis: Analysis, pointer: _Pointer) -> _Held | None:
    """The innermost fact at the pointer."""
    held = [
        _Held(lock=job.lock, fact=fact, place=fact.place)
        for job in analysis.jobs
        for fact in job.reading.facts
        if fact.place is not None and pointer.is_inside(fact.place)
    ]
    return min(held, key=lambda h: _length(h.place, pointer.ruler), default=None)


def _length(place: Place, ruler: Ruler) -> int:
    end = ruler.offset_of(place.end_line, place.end_column)
    return end - ruler.offset_of(place.line, place.column)


async def _answer(ls: InfraRSIServer, found: _Bound | _Held, pointer: _Pointer) -> types.Hover:
    match found:
        case _Bound():
            numbers = await look_up_numbers(ls, found.lock.digest)
            value = knob_text(found.knob, found.binding, found.lock, numbers)
        case _Held():
            value = fact_text(found.fact, found.lock)
    return types.Hover(
        contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=value),
        range=pointer.ruler.range_of(found.place),
    )
