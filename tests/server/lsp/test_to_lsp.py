"""Violations and edits in the protocol's types."""

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.edits import Edit
from infrarsi.errors import EditConflict
from infrarsi.place import Place
from infrarsi_server.lsp.to_lsp import diagnostic, path_of, severity_of, uri_of, workspace_edit

ROOT = Path("/w")
UNITS = PositionCodec()
PLACE = Place(file="train.py", line=1, column=9, end_line=1, end_column=10)
SEVERITY = types.DiagnosticSeverity


def breach(**changes: object) -> Violation:
    return violation("W101", "64 rows became 32.", place=PLACE).model_copy(update=changes)


@pytest.mark.parametrize(
    ("found", "guard", "severity"),
    [
        (breach(), "warn", SEVERITY.Warning),
        (breach(), "strict", SEVERITY.Error),
        (breach(severity="warning"), "strict", SEVERITY.Warning),
        (breach(severity="info"), "warn", SEVERITY.Information),
        (breach(code="D901"), "strict", SEVERITY.Hint),
    ],
)
def test_an_error_is_a_warning_unless_the_guard_is_strict(
    found: Violation, guard: object, severity: types.DiagnosticSeverity
) -> None:
    assert severity_of(found, guard) == severity  # pyright: ignore[reportArgumentType]


def test_a_violation_without_a_readable_place_stands_at_the_top() -> None:
    found = diagnostic(breach(), ROOT, {}, UNITS, "warn")
    assert found.range.start == types.Position(line=0, character=0)


def test_the_contracts_place_is_related_information() -> None:
    related = Place(file="infrarsi.toml", line=2, column=1, end_line=2, end_column=4)
    texts = {"train.py": "BATCH = 4\n", "infrarsi.toml": "a\nabc\n"}
    found = diagnostic(breach(contract_place=related), ROOT, texts, UNITS, "warn")
    assert found.related_information is not None
    location = found.related_information[0].location
    assert location.uri == "file:///w/infrarsi.toml"
    assert location.range.start == types.Position(line=1, character=0)


def test_the_marked_line_is_not_related_to_itself() -> None:
    found = diagnostic(
        breach(contract_place=PLACE), ROOT, {"train.py": "BATCH = 4\n"}, UNITS, "warn"
    )
    assert found.related_information is None


def test_a_fix_across_files_names_each_version() -> None:
    edits = (
        Edit(file="a.py", start=4, old="1", new="2"),
        Edit(file="b.py", start=0, old="", new="x"),
    )
    made = workspace_edit(edits, ROOT, {"a.py": ("a = 1", 7), "b.py": ("", None)}, UNITS)
    assert made.document_changes is not None
    versions = [change.text_document.version for change in made.document_changes]  # pyright: ignore
    assert versions == [7, None]


def test_an_edit_of_text_that_moved_on_is_refused() -> None:
    edit = Edit(file="a.py", start=4, old="1", new="2")
    with pytest.raises(EditConflict):
        workspace_edit((edit,), ROOT, {"a.py": ("a = 3", 7)}, UNITS)
    with pytest.raises(EditConflict):
        workspace_edit((edit,), ROOT, {"a.py": (None, None)}, UNITS)


def test_a_path_with_spaces_and_quotes_survives_as_a_uri() -> None:
    path = Path("/w/my 'run' #1/träin.py")
    assert path_of(uri_of(path)) == path


def test_what_is_no_file_has_no_path() -> None:
    assert path_of("untitled:Untitled-1") is None
    assert path_of("git:/w/a.py?ref") is None
