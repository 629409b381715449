"""Hover on a knob where it is set: what each value would give, and the contract's clause."""

import re
from dataclasses import dataclass

from lsprotocol import types

from infrarsi.contract import Lock
from infrarsi.knobs import Binding, Knob
from infrarsi.place import Place
from infrarsi_server.lsp.features.actions import current_analysis
from infrarsi_server.lsp.features.predictions import look_up_table
from infrarsi_server.lsp.hover_text import knob_text
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
        ruler = Ruler(text, ls.workspace.position_codec)
        bound = _bound_at(analysis, file, text, ruler, ruler.offset(params.position))
        if bound is None:
            return None
        table = await look_up_table(ls, bound.lock.digest)
        value = knob_text(bound.knob, bound.binding, bound.lock, table)
        return types.Hover(
            contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=value),
            range=ruler.range_of(bound.place),
        )


def _bound_at(analysis: Analysis, file: str, text: str, ruler: Ruler, offset: int) -> _Bound | None:
    word = next((m[0] for m in _WORD.finditer(text) if m.start() <= offset < m.end()), "")
    for job in analysis.jobs:
        for knob in job.reading.knobs:
            for binding in knob.bindings:
                place = binding.place
                if place is None or place.file != file:
                    continue
                if _touches(place, binding.name, ruler, offset, word):
                    return _Bound(lock=job.lock, knob=knob, binding=binding, place=place)
    return None


def _touches(place: Place, name: str, ruler: Ruler, offset: int, word: str) -> bool:
    """Inside the place itself, or on the knob's name on the line that sets it."""
    start = ruler.offset_of(place.line, place.column)
    end = ruler.offset_of(place.end_line, place.end_column)
    if start <= offset < end:
        return True
    line_start = ruler.offset_of(place.line, 1)
    return line_start <= offset < end and bool(word) and word.strip("-") == name.strip("-")
