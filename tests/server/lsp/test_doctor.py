"""Doctor from the editor: progress, cancel on the request or its token, and how it fails.

The runner is scripted here; with a real one it is walked through in the journeys.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from editor import Editor, in_thread, start_editor
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from recorded_results import calibration
from scripted_runner import answer, scripted_runner, stream

from infrarsi.wire.messages import (
    PROTOCOL,
    CampaignView,
    EventBody,
    Health,
    Plan,
    Planned,
    Progressed,
    StateChanged,
    Stored,
)
from infrarsi.wire.probe import Profile
from infrarsi.wire.results import DoctorResult

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAN = Planned(plan=Plan(sentences=("Five runs of train.py.", "About 40 s."), expected_s=40.0))
HALF = Progressed(stage="timed", message="Timing the baseline", done=1, total=2)
PROFILE = Profile(
    step_time_s=2.0,
    data_s=0.5,
    forward_s=0.5,
    backward_s=0.5,
    communication_s=0.0,
    optimizer_s=0.25,
    other_s=0.25,
    n_steps=6,
)


@dataclass
class Script:
    """A runner whose one campaign works until it is stopped, or ends as told."""

    end: StateChanged | None = None
    state: str = "running"
    asked: list[str] = field(default_factory=list)

    def reply(self, method: str, target: str) -> bytes:
        self.asked.append(f"{method} {target.partition('?')[0]}")
        if target == "/v1/health":
            return answer(Health(version="0", protocol=PROTOCOL, pid=1))
        if target == "/v1/objects":
            return answer(Stored(commits=()))
        if target.startswith("/v1/events"):
            return self._events(int(target.rpartition("=")[2]))
        if target.endswith("/stop"):
            self.state = "stopped"
        return answer(self._view())

    def _events(self, after: int) -> bytes:
        events: list[tuple[int, EventBody]] = [(1, PLAN), (2, HALF)]
        if self.end is not None:
            events.append((3, self.end))
            self.state = self.end.state
        return stream(*(event for event in events if event[0] > after))

    def _view(self) -> CampaignView:
        measured = DoctorResult(calibration=calibration("d"), profile=PROFILE)
        return CampaignView.model_validate(
            {
                "id": "c1",
                "kind": "doctor",
                "state": self.state,
                "created_s": 0.0,
                "contract_digest": "d",
                "doctor": measured if self.state == "finished" else None,
                "what": self.end.what if self.end else "",
                "do": self.end.do if self.end else "",
            }
        )


class Stage:
    """The runner's side: plays the script it was given last."""

    def __init__(self) -> None:
        self.script = Script()

    def reply(self, method: str, target: str) -> bytes:
        return self.script.reply(method, target)


@asynccontextmanager
async def staged(folder: Path, stage: Stage) -> AsyncIterator[Editor]:
    """An editor whose runner follows the stage."""
    socket = folder / "s"
    (folder / "runner.json").write_text(json.dumps({"socket": str(socket)}))
    async with (
        in_thread(scripted_runner(socket, stage.reply)),
        start_editor(folder, environ={"INFRARSI_STATE": str(folder)}) as editor,
    ):
        yield editor


@pytest.fixture(scope="module")
def stage() -> Stage:
    """What the runner of this module's editor plays."""
    return Stage()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def theatre(tmp_path_factory: pytest.TempPathFactory, stage: Stage) -> AsyncIterator[Editor]:
    """One editor for the module, with a scripted runner."""
    async with staged(tmp_path_factory.mktemp("s"), stage) as editor:
        yield editor


@pytest.fixture
def stages(theatre: Editor, stage: Stage) -> Callable[[Script], Editor]:
    """Give the runner its script; the editor has seen nothing yet."""

    def play(script: Script) -> Editor:
        stage.script = script
        theatre.progress.clear()
        theatre.client.messages.clear()
        return theatre

    return play


def messages(editor: Editor) -> list[str]:
    reports = [report.value for report in editor.progress]
    return [value["message"] for value in reports if value.get("message")]


async def is_timing(editor: Editor) -> None:
    await editor.until(lambda: "Timing the baseline" in messages(editor) or None)


def ask(editor: Editor, project: Path, token: str) -> "asyncio.Future[Any]":
    editor.accept_token(token)
    params = {"root": project.as_uri(), "workDoneToken": token}
    return asyncio.ensure_future(
        editor.client.protocol.send_request_async("infrarsi/doctor", params, msg_id=token)
    )


async def test_progress_is_reported_and_the_answer_is_the_calibration(
    stages: Callable[[Script], Editor], project: Path
) -> None:
    editor = stages(Script(end=StateChanged(state="finished")))
    report = await ask(editor, project, "whole")
    assert report.calibration.step_time_s.value == 2.0
    assert messages(editor) == [
        "Five runs of train.py. About 40 s.",
        "Timing the baseline",
        "Measured: 2.00 s a step, MFU 24.5 %.",
    ]
    kinds = [report.value["kind"] for report in editor.progress]
    assert kinds == ["begin", "report", "report", "end"]


@pytest.mark.parametrize("by", ["request", "token"])
async def test_cancelling_stops_the_campaign(
    stages: Callable[[Script], Editor], project: Path, by: str
) -> None:
    script = Script()
    editor = stages(script)
    asking = ask(editor, project, by)
    await is_timing(editor)
    if by == "request":
        editor.client.cancel_request(types.CancelParams(id=by))
    else:
        editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token=by))
    with pytest.raises(JsonRpcException, match="cancel"):
        await asking
    assert script.state == "stopped"
    assert editor.progress[-1].value["kind"] == "end"


async def test_closing_the_editor_leaves_the_campaign_running(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = Stage()
    async with staged(tmp_path_factory.mktemp("s"), stage) as editor:
        asking = ask(editor, project, "left")
        await is_timing(editor)
    with pytest.raises(JsonRpcException, match="cancel"):
        await asking
    assert stage.script.state == "running"


async def test_a_campaign_that_fails_says_why(
    stages: Callable[[Script], Editor], project: Path
) -> None:
    end = StateChanged(state="failed", what="The baseline crashes.", do="Mend it first.")
    with pytest.raises(JsonRpcException, match=r"The baseline crashes\. Mend it first\."):
        await ask(stages(Script(end=end)), project, "failing")


async def test_the_command_answers_at_once_and_tells_the_result(
    stages: Callable[[Script], Editor], project: Path
) -> None:
    editor = stages(Script(end=StateChanged(state="finished")))
    assert await editor.client.workspace_execute_command_async(doctor_command(project)) is None
    told = await editor.until(lambda: next(iter(editor.client.messages), None))
    assert told.message == "Measured: 2.00 s a step, MFU 24.5 %."
    assert "Timing the baseline" in messages(editor)


async def test_the_stop_command_stops_it(stages: Callable[[Script], Editor], project: Path) -> None:
    script = Script()
    editor = stages(script)
    run = editor.client.workspace_execute_command_async
    await run(doctor_command(project))
    await is_timing(editor)
    assert await run(types.ExecuteCommandParams(command="infrarsi.server.stop")) == 1
    await editor.until(lambda: editor.progress[-1].value["kind"] == "end" or None)
    assert script.state == "stopped"


def doctor_command(project: Path) -> types.ExecuteCommandParams:
    return types.ExecuteCommandParams(
        command="infrarsi.server.doctor", arguments=[project.as_uri()]
    )
