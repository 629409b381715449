"""A broken contract is marked while typing, at the right place, and not a moment longer."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from editor import Editor, position_of, start_editor
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="session")

Diagnostics = Sequence[types.Diagnostic]


def codes(found: Diagnostics) -> list[object]:
    return [one.code for one in found]


def has_w101(found: Diagnostics) -> bool:
    return "W101" in codes(found)


def is_clean(found: Diagnostics) -> bool:
    return not found


async def knock(editor: Editor, path: Path) -> None:
    """A round trip that waits for no reading."""
    top = types.Position(line=0, character=0)
    await editor.client.text_document_code_action_async(
        types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=path.as_uri()),
            range=types.Range(start=top, end=top),
            context=types.CodeActionContext(diagnostics=[], only=[types.CodeActionKind.Refactor]),
        )
    )


async def test_an_untouched_file_has_no_findings(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    editor.open(train)
    assert await editor.diagnostics(train, is_clean) == ()


async def test_a_broken_product_is_marked_where_it_was_broken(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    (found,) = await editor.diagnostics(train, has_w101)
    start = position_of(editor.text(train), "2; ACCUM")
    assert found.range.start == start
    assert found.range.end == types.Position(line=start.line, character=start.character + 1)
    assert (found.code, found.source) == ("W101", "infrarsi")
    assert found.severity == types.DiagnosticSeverity.Warning
    assert "16 sequences per step instead of 32" in found.message


async def test_compensating_by_hand_clears_it(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    await editor.diagnostics(train, has_w101)
    editor.replace(train, "ACCUM = 8", "ACCUM = 16")
    await editor.diagnostics(train, is_clean)


async def test_columns_are_counted_in_utf16_behind_an_astral_character(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    astral = (
        (project / "train.py")
        .read_text()
        .replace("MICRO_BATCH = 4;", 'A = "😀😀"; MICRO_BATCH = 2;')
    )
    editor.open(train, astral)
    (found,) = await editor.diagnostics(train, has_w101)
    assert found.range.start == position_of(astral, "2; ACCUM")
    assert found.range.start.character == len('A = "😀😀"; MICRO_BATCH = ') + 2


async def test_a_form_feed_does_not_shift_the_mark(editor: Editor, project: Path) -> None:
    sync = editor.capabilities.text_document_sync
    assert isinstance(sync, types.TextDocumentSyncOptions)
    assert sync.change == types.TextDocumentSyncKind.Full, "pygls counts a form feed as a line"
    train = project / "train.py"
    editor.open(train, "\x0c\n" + train.read_text())
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    (found,) = await editor.diagnostics(train, has_w101)
    assert found.range.start == position_of(editor.text(train), "2; ACCUM")


async def test_half_typed_code_elsewhere_does_not_make_it_blink(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    await editor.diagnostics(train, has_w101)
    seen = len(editor.published)
    whole = editor.text(train)
    for typed in ("def f(", "def f(x):", "def f(x):\n    return [", "def f(x):\n    return [x"):
        editor.change(train, whole + typed)
        await editor.diagnostics(train, has_w101)
    since = [p for p in editor.published[seen:] if p.uri == train.as_uri()]
    assert len(since) >= 4
    assert all(has_w101(push.diagnostics) for push in since)


async def test_only_the_newest_version_is_published(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    editor.open(train)
    await editor.diagnostics(train, is_clean)
    seen = len(editor.published)
    for value in (1, 2, 3, 5, 6, 7):
        editor.replace(train, "\nSEQ_LEN", f"\n# {value}\nSEQ_LEN")
    version = editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    await editor.diagnostics(train, has_w101)
    versions = [p.version for p in editor.published[seen:] if p.uri == train.as_uri()]
    assert versions == [version]


async def test_what_was_computed_from_an_older_text_is_never_published(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    long = train.read_text() + "".join(f"def f{n}(x):\n    return [x, {n}]\n" for n in range(3000))
    editor.open(train, long.replace("MICRO_BATCH = 4", "MICRO_BATCH = 2"))
    for n in range(20):
        await knock(editor, train)
        newest = editor.change(train, f"{long}# {n}\n")
    await editor.diagnostics(train, is_clean)
    versions = {p.version for p in editor.published if p.uri == train.as_uri()}
    assert versions == {newest}


async def test_an_edit_is_marked_though_the_value_is_used_in_another_file(
    editor: Editor, project: Path
) -> None:
    train, settings = project / "train.py", project / "settings.py"
    moved = train.read_text().replace("ACCUM = 8  #", "ACCUM = settings.ACCUM  #")
    editor.open(train, moved)
    editor.open(settings, "LR = 1e-3\nACCUM = 4\n")
    (found,) = await editor.diagnostics(settings, has_w101)
    assert found.range.start == types.Position(line=1, character=8)
    editor.change(settings, "LR = 1e-3\nACCUM = 8\n")
    await editor.diagnostics(settings, is_clean)


async def test_a_locked_data_file_is_marked_while_it_is_edited(
    editor: Editor, project: Path
) -> None:
    data = project / "data.txt"
    editor.open(data)
    await editor.diagnostics(data, is_clean)
    editor.change(data, "other rows\n")
    assert codes(await editor.diagnostics(data, lambda found: bool(found))) == ["S401"]
    editor.change(data, "rows\n")
    await editor.diagnostics(data, is_clean)


async def test_a_broken_configuration_is_said_on_its_own_file(
    editor: Editor, project: Path
) -> None:
    config = project / "infrarsi.toml"
    editor.open(config)
    editor.change(config, "[job.main\n")
    (found,) = await editor.diagnostics(config, lambda found: bool(found))
    assert found.severity == types.DiagnosticSeverity.Error
    assert "not valid TOML" in found.message


async def test_a_file_outside_any_job_is_left_alone(editor: Editor, tmp_path: Path) -> None:
    lonely = tmp_path / "train.py"
    editor.open(lonely, "MICRO_BATCH = 2\n")
    assert await editor.hover(lonely, "MICRO_BATCH") is None
    assert not [p for p in editor.published if p.uri == lonely.as_uri()]


async def test_the_strict_guard_makes_it_an_error(project: Path, tmp_path: Path) -> None:
    train = project / "train.py"
    async with start_editor(tmp_path, options={"guard": "strict"}) as editor:
        editor.open(train)
        editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
        (found,) = await editor.diagnostics(train, has_w101)
        assert found.severity == types.DiagnosticSeverity.Error
        editor.client.workspace_did_change_configuration(
            types.DidChangeConfigurationParams(settings={"infrarsi": {"guard": "warn"}})
        )
        await editor.diagnostics(
            train, lambda found: found[0].severity == types.DiagnosticSeverity.Warning
        )


async def test_a_handler_that_fails_says_nothing_to_the_person(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    said = len(editor.client.messages)
    never_opened = project / "settings.py"
    editor.client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(
                uri=never_opened.with_name("gone.py").as_uri(), version=3
            ),
            content_changes=[
                types.TextDocumentContentChangePartial(
                    range=types.Range(
                        start=types.Position(line=9, character=9),
                        end=types.Position(line=9, character=9),
                    ),
                    text="x",
                )
            ],
        )
    )
    editor.open(train)
    await editor.diagnostics(train, is_clean)
    assert len(editor.client.messages) == said
