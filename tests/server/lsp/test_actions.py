"""Quick fixes: offered for what is marked, resolved on demand, refused when the code moved on."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from editor import Editor, start_editor
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import client_capabilities

pytestmark = pytest.mark.asyncio(loop_scope="session")

Diagnostics = Sequence[types.Diagnostic]


def has_w101(found: Diagnostics) -> bool:
    return any(one.code == "W101" for one in found)


def is_clean(found: Diagnostics) -> bool:
    return not found


async def broken(editor: Editor, train: Path) -> list[types.CodeAction]:
    editor.open(train)
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    return await editor.fixes(train, await editor.diagnostics(train, has_w101))


def titled(actions: Sequence[types.CodeAction], word: str) -> types.CodeAction:
    return next(action for action in actions if word in action.title)


async def test_restore_and_compensate_are_offered_and_not_yet_computed(
    editor: Editor, project: Path
) -> None:
    actions = await broken(editor, project / "train.py")
    assert [action.title for action in actions] == [
        "Restore micro-batch 4",
        "Accumulate 16 instead of 8, so that 32 sequences per step stay",
    ]
    assert {action.kind for action in actions} == {types.CodeActionKind.QuickFix}
    assert all(action.edit is None for action in actions)
    assert actions[0].diagnostics
    assert actions[0].diagnostics[0].code == "W101"


@pytest.mark.parametrize(
    ("word", "line"),
    [("Restore", "MICRO_BATCH = 4; ACCUM = 8"), ("Accumulate", "MICRO_BATCH = 2; ACCUM = 16")],
)
async def test_a_chosen_fix_clears_the_mark(
    editor: Editor, project: Path, word: str, line: str
) -> None:
    train = project / "train.py"
    action = titled(await broken(editor, train), word)
    resolved = await editor.client.code_action_resolve_async(action)
    assert resolved.edit is not None
    editor.apply(resolved.edit)
    assert line in editor.text(train)
    await editor.diagnostics(train, is_clean)


async def test_a_fix_reaches_into_a_file_that_is_not_open(editor: Editor, project: Path) -> None:
    train, settings = project / "train.py", project / "settings.py"
    settings.write_text("LR = 1e-3\nACCUM = 8\n")
    editor.open(train, train.read_text().replace("ACCUM = 8  #", "ACCUM = settings.ACCUM  #"))
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    actions = await editor.fixes(train, await editor.diagnostics(train, has_w101))
    resolved = await editor.client.code_action_resolve_async(titled(actions, "Accumulate 16"))
    assert resolved.edit is not None
    assert resolved.edit.document_changes is not None
    (change,) = resolved.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.uri == settings.as_uri()
    assert change.text_document.version is None
    editor.apply(resolved.edit)
    assert editor.text(settings) == "LR = 1e-3\nACCUM = 16\n"
    await editor.diagnostics(train, is_clean)


async def test_a_fix_is_refused_with_a_message_once_the_document_moved_on(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    action = titled(await broken(editor, train), "Restore")
    editor.change(train, "\n" + editor.text(train))
    with pytest.raises(JsonRpcException, match="changed since"):
        await editor.client.code_action_resolve_async(action)
    assert "changed since" in editor.client.messages[-1].message


async def test_a_fix_is_refused_once_another_file_changed_on_disk(
    editor: Editor, project: Path
) -> None:
    train, settings = project / "train.py", project / "settings.py"
    settings.write_text("LR = 1e-3\nACCUM = 8\n")
    editor.open(train, train.read_text().replace("ACCUM = 8  #", "ACCUM = settings.ACCUM  #"))
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    actions = await editor.fixes(train, await editor.diagnostics(train, has_w101))
    settings.write_text("LR = 1e-3\nACCUM = 8 * 2\n")
    with pytest.raises(JsonRpcException, match="changed since"):
        await editor.client.code_action_resolve_async(titled(actions, "Accumulate 16"))


async def test_a_fix_for_another_file_is_refused_once_its_cause_is_gone(
    editor: Editor, project: Path
) -> None:
    train, settings = project / "train.py", project / "settings.py"
    settings.write_text("LR = 1e-3\nACCUM = 8\n")
    editor.open(train, train.read_text().replace("ACCUM = 8  #", "ACCUM = settings.ACCUM  #"))
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    actions = await editor.fixes(train, await editor.diagnostics(train, has_w101))
    editor.replace(train, "MICRO_BATCH = 2", "MICRO_BATCH = 4")
    with pytest.raises(JsonRpcException, match="changed since"):
        await editor.client.code_action_resolve_async(titled(actions, "Accumulate 16"))


async def test_no_fix_is_offered_where_nothing_is_marked(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    await broken(editor, train)
    top = types.Position(line=0, character=0)
    elsewhere = types.Diagnostic(range=types.Range(start=top, end=top), message="")
    assert await editor.fixes(train, [elsewhere]) == []


async def test_fixes_are_no_part_of_fixing_all_on_save(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    await broken(editor, train)
    (found,) = await editor.diagnostics(train, has_w101)
    answer = await editor.client.text_document_code_action_async(
        types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=train.as_uri()),
            range=found.range,
            context=types.CodeActionContext(
                diagnostics=[found], only=[types.CodeActionKind.SourceFixAll]
            ),
        )
    )
    assert not answer


async def test_a_client_that_cannot_resolve_gets_whole_edits(project: Path, tmp_path: Path) -> None:
    capabilities = client_capabilities("visual-studio-code")
    assert capabilities.text_document
    assert capabilities.text_document.code_action
    capabilities.text_document.code_action.resolve_support = None
    async with start_editor(tmp_path, capabilities=capabilities) as editor:
        actions = await broken(editor, project / "train.py")
        assert actions
        assert all(action.edit is not None for action in actions)
