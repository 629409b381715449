import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_runner import answer, scripted_runner, silent_socket, stream

from infrarsi.errors import RunnerError, RunnerRefused, RunnerUnreachable, VersionMismatch
from infrarsi.wire.messages import (
    PROTOCOL,
    CampaignView,
    Health,
    Progressed,
    Refusal,
    StateChanged,
)
from infrarsi_server import runner_process
from infrarsi_server.runner_client import RunnerClient
from infrarsi_server.runner_process import find_runner, need_runner, serve_command, state_folder

HEALTH = Health(version="0.1.0", protocol=PROTOCOL, pid=1)
VIEW = CampaignView(id="c1", kind="run", state="running", created_s=0.0, contract_digest="d")
PROGRESS = Progressed(stage="search", message="m")
FINISHED = StateChanged(state="finished")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RunnerClient]:
    with RunnerClient(tmp_path / "s") as client:
        yield client


def test_another_protocol_is_said_before_anything_else(client: RunnerClient) -> None:
    other = answer(json.dumps({"protocol": PROTOCOL + 1, "shape": "unknown"}))
    with (
        scripted_runner(client.path, lambda *_: other),
        pytest.raises(VersionMismatch, match=f"protocol {PROTOCOL + 1}.*runner stop"),
    ):
        client.health()


def test_a_refusal_arrives_with_both_sentences(client: RunnerClient) -> None:
    refusal = answer(Refusal(what="No campaign c1.", do="List them."), status=404)
    with (
        scripted_runner(client.path, lambda *_: refusal),
        pytest.raises(
            RunnerRefused, match=r"No campaign c1\. List them with: infrarsi runner status"
        ),
    ):
        client.campaign("c1")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (answer("Internal Server Error", status=500), RunnerError),
        (answer("not json"), RunnerError),
        (answer('{"version": "9"}'), VersionMismatch),
        (b"garbage\r\n\r\n", RunnerError),
        (b"", RunnerUnreachable),
    ],
)
def test_every_odd_answer_is_one_of_our_errors(
    client: RunnerClient, raw: bytes, error: type[RunnerError]
) -> None:
    with scripted_runner(client.path, lambda *_: raw), pytest.raises(error):
        client.health()


def test_events_are_taken_up_behind_the_last_one_after_a_break(client: RunnerClient) -> None:
    seen: list[str] = []

    def reply(_: str, target: str) -> bytes:
        seen.append(target)
        if len(seen) == 1:
            return stream((1, PROGRESS), (2, PROGRESS), cut=True)
        return b"" if len(seen) == 2 else stream((3, PROGRESS), (4, FINISHED))

    pauses: list[float] = []
    with scripted_runner(client.path, reply):
        events = list(client.events("c1", sleep=pauses.append))
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert [target[-1] for target in seen] == ["0", "2", "2"]
    assert pauses == sorted(pauses)
    assert len(pauses) == 2


def test_a_stream_that_ends_early_is_asked_for_again(client: RunnerClient) -> None:
    answers = iter([stream((1, PROGRESS)), answer(VIEW), stream((2, FINISHED))])
    with scripted_runner(client.path, lambda *_: next(answers)):
        events = list(client.events("c1", sleep=lambda _: None))
    assert [event.seq for event in events] == [1, 2]


def test_a_daemon_that_is_gone_is_revived_and_given_up_in_the_end(client: RunnerClient) -> None:
    revived: list[int] = []
    events = client.events("c1", revive=lambda: revived.append(1), sleep=lambda _: None)
    with pytest.raises(RunnerUnreachable):
        list(events)
    assert len(revived) > 3


@pytest.mark.parametrize(("status", "exit_code"), [(400, 2), (404, 2), (409, 3), (500, 3)])
def test_what_cannot_be_done_is_the_askers_and_what_the_machine_refuses_is_not(
    client: RunnerClient, status: int, exit_code: int
) -> None:
    refusal = answer(Refusal(what="No."), status=status)
    with (
        scripted_runner(client.path, lambda *_: refusal),
        pytest.raises(RunnerRefused) as raised,
    ):
        client.campaign("c1")
    assert raised.value.exit_code == exit_code


def test_no_such_campaign_ends_the_events_at_once(client: RunnerClient) -> None:
    refusal = answer(Refusal(what="No campaign c1."), status=404)
    with scripted_runner(client.path, lambda *_: refusal), pytest.raises(RunnerRefused):
        list(client.events("c1"))


def test_a_contract_without_predictions_has_no_table(client: RunnerClient) -> None:
    with scripted_runner(client.path, lambda *_: answer(Refusal(what="None."), status=404)):
        assert client.predictions("d") is None


def test_the_runner_is_found_by_its_note(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    (tmp_path / "runner.json").write_text(json.dumps({"socket": str(socket), "pid": 1}))
    assert find_runner(tmp_path) is None
    silent_socket(socket)
    assert find_runner(tmp_path) is None
    socket.unlink()
    with scripted_runner(socket, lambda *_: answer(HEALTH)):
        found = find_runner(tmp_path)
        assert found is not None
        found.close()


@pytest.mark.parametrize("note", ["", "[]", '{"pid": 1}', '{"socket": 3}'])
def test_a_broken_note_is_no_runner(tmp_path: Path, note: str) -> None:
    (tmp_path / "runner.json").write_text(note)
    assert find_runner(tmp_path) is None


def test_a_runner_that_is_not_installed_is_said_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RunnerUnreachable, match=r"pip install 'infrarsi\[runner\]'"):
        need_runner(tmp_path)


def test_a_runner_that_ends_at_once_is_said_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = [sys.executable, "-c", "import sys; sys.exit('No space left on device')"]
    monkeypatch.setattr(runner_process, "serve_command", lambda: dies)
    monkeypatch.setattr(runner_process, "_OTHER_TIMEOUT_S", 0.1)
    with pytest.raises(RunnerUnreachable, match="No space left on device"):
        need_runner(tmp_path / "state")


def test_a_state_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunnerUnreachable, match="INFRARSI_STATE"):
        need_runner(tmp_path / "file" / "state")


def test_the_daemon_is_run_by_the_same_python() -> None:
    assert serve_command() == [sys.executable, "-m", "infrarsi_runner", "serve"]


def test_the_state_folder_follows_the_environment(tmp_path: Path) -> None:
    assert state_folder({"INFRARSI_STATE": str(tmp_path)}) == tmp_path
    assert state_folder({"XDG_STATE_HOME": "/x"}) == Path("/x/infrarsi")
    assert state_folder({}).parts[-3:] == (".local", "state", "infrarsi")
