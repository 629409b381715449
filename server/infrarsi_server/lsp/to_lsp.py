"""Violations and edits in the protocol's types. Pure: texts and documents come as arguments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from lsprotocol import types
from pygls import uris

from infrarsi.contract.violation import Violation
from infrarsi.edits import Edit
from infrarsi.errors import EditConflict
from infrarsi_server.lsp.positions import Ruler, Units

SOURCE = "infrarsi"
Guard = Literal["warn", "strict"]
FileNow = tuple[str | None, int | None]
"""A file's text, and its version where it is open."""

_SEVERITIES: dict[str, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Warning,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
_HINTED = frozenset({"doctor", "promotion"})


def uri_of(path: Path) -> str:
    """The file URI of an absolute path."""
    return uris.from_fs_path(str(path)) or path.as_uri()


def path_of(uri: str) -> Path | None:
    """The absolute path a file URI names; None for any other scheme."""
    if not uri.startswith("file:"):
        return None
    path = uris.to_fs_path(uri)
    return Path(path) if path else None


def severity_of(violation: Violation, guard: Guard) -> types.DiagnosticSeverity:
    """Warnings while a person works; errors stay errors under the strict guard."""
    if violation.family in _HINTED:
        return types.DiagnosticSeverity.Hint
    if violation.severity == "error" and guard == "strict":
        return types.DiagnosticSeverity.Error
    return _SEVERITIES[violation.severity]


def diagnostic(
    violation: Violation, root: Path, texts: Mapping[str, str], units: Units, guard: Guard
) -> types.Diagnostic:
    """A violation at its place, with the contract's place as related information.

    `texts` hold the file of each place, as it was when the violation was found.
    """
    return types.Diagnostic(
        range=_range(violation, texts, units),
        message=violation.message,
        severity=severity_of(violation, guard),
        source=SOURCE,
        code=violation.code,
        related_information=_related(violation, root, texts, units),
    )


def workspace_edit(
    edits: Sequence[Edit], root: Path, now: Mapping[str, FileNow], units: Units
) -> types.WorkspaceEdit:
    """The edits of a fix, each file under the version it has now (`now`, by path from the root).

    Raises:
        EditConflict: a file no longer holds what an edit was computed from.
    """
    files = sorted({edit.file for edit in edits})
    return types.WorkspaceEdit(
        document_changes=[
            _document_edit([e for e in edits if e.file == file], root / file, now[file], units)
            for file in files
        ]
    )


def _document_edit(
    edits: Sequence[Edit], path: Path, found: FileNow, units: Units
) -> types.TextDocumentEdit:
    text, version = found
    for edit in edits:
        if text is None or text[edit.start : edit.end] != edit.old:
            raise EditConflict(
                f"{edit.file} has changed since this fix was computed.", "Ask for the fix again."
            )
    ruler = Ruler(text or "", units)
    return types.TextDocumentEdit(
        text_document=types.OptionalVersionedTextDocumentIdentifier(
            uri=uri_of(path), version=version
        ),
        edits=[
            types.TextEdit(range=ruler.span(edit.start, edit.end), new_text=edit.new)
            for edit in edits
        ],
    )


def _related(
    violation: Violation, root: Path, texts: Mapping[str, str], units: Units
) -> list[types.DiagnosticRelatedInformation] | None:
    """The contract's place, unless it is the very line that is marked."""
    place, marked = violation.contract_place, violation.place
    if place is None or place.file not in texts:
        return None
    if marked is not None and (marked.file, marked.line) == (place.file, place.line):
        return None
    location = types.Location(
        uri=uri_of(root / place.file), range=Ruler(texts[place.file], units).range_of(place)
    )
    message = "The contract was read from here."
    return [types.DiagnosticRelatedInformation(location=location, message=message)]


def _range(violation: Violation, texts: Mapping[str, str], units: Units) -> types.Range:
    place = violation.place
    if place is None or place.file not in texts:
        top = types.Position(line=0, character=0)
        return types.Range(start=top, end=top)
    return Ruler(texts[place.file], units).range_of(place)
