"""What changes outside the editor is read again, whoever does the watching."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from editor import Editor, start_editor
from lsprotocol import types
from pytest_lsp import client_capabilities

from infrarsi_server.operations.lock import lock_jobs
from infrarsi_server.operations.project import open_project

pytestmark = pytest.mark.asyncio(loop_scope="session")

W101 = ["W101"]


def codes(found: Sequence[types.Diagnostic]) -> list[object]:
    return [one.code for one in found]


def changed(editor: Editor, path: Path) -> None:
    event = types.FileEvent(uri=path.as_uri(), type=types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(
        types.DidChangeWatchedFilesParams(changes=[event])
    )


def accept(project: Path, text: str) -> None:
    """Lock the project again with another text of its script."""
    (project / "train.py").write_text(text)
    lock_jobs(open_project(project))


async def test_a_client_that_can_watch_is_asked_to(editor: Editor) -> None:
    registration = await editor.until(lambda: next(iter(editor.registrations), None))
    assert registration.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES


async def test_a_new_lock_is_taken_over(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    await editor.diagnostics(train, lambda found: codes(found) == W101)
    accept(project, editor.text(train))
    changed(editor, project / ".infrarsi/contract.lock.json")
    await editor.diagnostics(train, lambda found: codes(found) == [])


async def test_a_file_that_is_not_open_is_read_again(editor: Editor, project: Path) -> None:
    train, settings = project / "train.py", project / "settings.py"
    settings.write_text("LR = 1e-3\nACCUM = 8\n")
    editor.open(train, train.read_text().replace("ACCUM = 8  #", "ACCUM = settings.ACCUM  #"))
    await editor.diagnostics(train, lambda found: codes(found) == [])
    settings.write_text("LR = 1e-3\nACCUM = 4\n")
    changed(editor, settings)
    await editor.until(
        lambda: next(
            (p for p in editor.published if p.uri == settings.as_uri() and codes(p.diagnostics)),
            None,
        )
    )


async def test_closing_without_saving_falls_back_to_the_file(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.open(project / "settings.py")
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    await editor.diagnostics(train, lambda found: codes(found) == W101)
    editor.close(train)
    await editor.until(
        lambda: next(
            (p for p in editor.published if p.uri == train.as_uri() and p.version is None), None
        )
    )


async def test_the_server_watches_for_a_client_that_cannot(project: Path, tmp_path: Path) -> None:
    capabilities = client_capabilities("visual-studio-code")
    assert capabilities.workspace
    capabilities.workspace.did_change_watched_files = None
    train = project / "train.py"
    async with start_editor(tmp_path, capabilities=capabilities) as editor:
        editor.open(train)
        editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
        await editor.diagnostics(train, lambda found: codes(found) == W101)
        assert not editor.registrations
        accept(project, editor.text(train))
        await editor.diagnostics(train, lambda found: codes(found) == [])
