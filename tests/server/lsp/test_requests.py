"""Init, lock and status from the editor, and how a request fails."""

import shutil
from pathlib import Path

import pytest
from editor import Editor, start_editor
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from repositories import make_repository

pytestmark = pytest.mark.asyncio(loop_scope="session")

REQUEST_FAILED = types.LSPErrorCodes.RequestFailed.value


@pytest.fixture
def unlocked(project: Path, tmp_path: Path) -> Path:
    """The training repository before InfraRSI was ever run on it."""
    files = {name: (project / name).read_text() for name in ("train.py", "settings.py", "data.txt")}
    return make_repository(tmp_path / "unlocked", files)


async def test_init_and_lock_wake_a_document_that_was_open_before(
    editor: Editor, unlocked: Path
) -> None:
    train = unlocked / "train.py"
    editor.open(train)
    root = unlocked.as_uri()
    init = await editor.ask("infrarsi/init", {"root": root, "launch": "python train.py"})
    assert init.written
    assert [job.job for job in init.jobs] == ["main"]
    assert (unlocked / "infrarsi.toml").is_file()
    again = await editor.ask("infrarsi/init", {"root": root, "launch": "python train.py"})
    assert not again.written
    locked = await editor.ask("infrarsi/lock", {"root": root})
    assert len(locked.jobs[0].digest) == 64
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    await editor.diagnostics(train, lambda found: [d.code for d in found] == ["W101"])


async def test_locking_mends_a_lock_file_that_is_broken(editor: Editor, project: Path) -> None:
    path = project / ".infrarsi" / "contract.lock.json"
    before = path.read_text()
    path.write_text("{")
    locked = await editor.ask("infrarsi/lock", {"root": project.as_uri()})
    assert locked.written
    assert path.read_text() == before


async def test_status_tells_jobs_violations_and_that_no_runner_is_up(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
    status = await editor.ask("infrarsi/status", {"root": project.as_uri()})
    (root,) = status.roots
    assert root.root == str(project)
    assert (root.jobs[0].job, root.jobs[0].n_violations) == ("main", 1)
    assert not status.runner.is_running


async def test_commands_do_the_same_for_clients_that_have_nothing_else(
    project: Path, tmp_path: Path
) -> None:
    async with start_editor(project, environ={"INFRARSI_STATE": str(tmp_path / "s")}) as editor:
        run = editor.client.workspace_execute_command_async
        lock = await run(types.ExecuteCommandParams(command="infrarsi.server.lock"))
        status = await run(types.ExecuteCommandParams(command="infrarsi.server.status"))
        assert not lock["written"]
        assert status["roots"][0]["jobs"][0]["digest"] == lock["jobs"][0]["digest"]
        assert await run(types.ExecuteCommandParams(command="infrarsi.server.stop")) == 0


async def test_a_request_that_fails_says_what_and_what_to_do(
    editor: Editor, unlocked: Path
) -> None:
    with pytest.raises(JsonRpcException, match="No job is set up") as failed:
        await editor.ask("infrarsi/lock", {"root": unlocked.as_uri()})
    assert failed.value.code == REQUEST_FAILED
    assert failed.value.data["do"] == "Run: infrarsi init"
    assert failed.value.data["exit_code"] == 2


async def test_a_wrong_parameter_is_named(editor: Editor) -> None:
    with pytest.raises(JsonRpcException, match="jbo: Extra inputs are not permitted"):
        await editor.ask("infrarsi/doctor", {"jbo": "main"})


async def test_an_untrusted_workspace_is_read_but_nothing_of_it_is_run(
    project: Path, tmp_path: Path
) -> None:
    train = project / "train.py"
    async with start_editor(tmp_path, options={"trusted": False}) as editor:
        editor.open(train)
        editor.replace(train, "MICRO_BATCH = 4", "MICRO_BATCH = 2")
        await editor.diagnostics(train, lambda found: len(found) == 1)
        for method in ("infrarsi/init", "infrarsi/lock", "infrarsi/doctor"):
            with pytest.raises(JsonRpcException, match="not trusted"):
                await editor.ask(method, {"root": project.as_uri()})


async def test_a_workspace_file_named_like_a_library_is_not_imported(
    project: Path, tmp_path: Path
) -> None:
    for library in ("pydantic", "pygls", "infrarsi_server", "typing"):
        (project / f"{library}.py").write_text("raise SystemExit('imported')\n")
    shutil.copytree(project, tmp_path / "copy")
    async with start_editor(tmp_path / "copy") as editor:
        assert (await editor.ask("infrarsi/status", {})).roots
