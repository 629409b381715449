"""Doctor from the editor on a real job, through the real daemon: cancelled, then to its end."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from editor import Editor, start_editor
from journey import Walk
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from infrarsi_server.runner_process import find_runner

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.fixture
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    walk = Walk(tmp_path_factory.mktemp("walk"))
    walk.prepare()
    yield walk
    walk.end()


def messages(editor: Editor) -> list[str]:
    values = [report.value for report in editor.progress]
    return [value["message"] for value in values if value.get("message")]


def states(walk: Walk) -> list[str]:
    runner = find_runner(walk.state)
    assert runner is not None
    with runner:
        return [view.state for view in runner.campaigns()]


def ask_doctor(editor: Editor, token: str) -> "asyncio.Future[Any]":
    editor.accept_token(token)
    params = {"workDoneToken": token}
    return asyncio.ensure_future(
        editor.client.protocol.send_request_async("infrarsi/doctor", params, msg_id=token)
    )


async def test_doctor_is_cancelled_then_measures_and_hovers_show_it(walk: Walk) -> None:
    train = walk.workspace / "train.py"
    environ = {"INFRARSI_STATE": str(walk.state)}
    async with start_editor(walk.workspace, environ=environ) as editor:
        cancelled = ask_doctor(editor, "first")
        await editor.until(lambda: (len(messages(editor)) >= 2) or None)
        editor.client.cancel_request(types.CancelParams(id="first"))
        with pytest.raises(JsonRpcException, match="cancel"):
            await cancelled
        assert editor.progress[-1].value["kind"] == "end"
        measured = await ask_doctor(editor, "second")
        assert measured.calibration.tokens_per_step == 32 * 64
        assert states(walk) == ["finished", "stopped"]
        editor.open(train)
        hover = await editor.hover(train, "MICRO_BATCH = 1")
    assert hover is not None
    assert isinstance(hover.contents, types.MarkupContent)
    assert "| **1** |" in hover.contents.value
    assert [line for line in walk.jobs() if "bwrap" in line] == []
