"""The daemon from outside: its socket, its routes, its end."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from daemons import PROGRAM, Daemon, make_request
from stub_runs import processes_of_runs, wait_for_a_run

from infrarsi.wire.messages import Health, Progressed, Refusal, StateChanged
from infrarsi.wire.results import PredictionTable


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon") / "state") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def commit(daemon: Daemon) -> str:
    return daemon.send_commit(daemon.state.parent / "user")


def refusal(answer: httpx.Response, status: int) -> Refusal:
    assert answer.status_code == status, answer.text
    return Refusal.model_validate_json(answer.text)


def test_it_says_who_it_is(daemon: Daemon) -> None:
    health = Health.model_validate_json(daemon.http.get("/v1/health").text)
    assert health.pid == daemon.process.pid == daemon.notice["pid"]
    assert json.loads((daemon.state / "runner.json").read_text()) == daemon.notice


def test_only_this_user_can_open_its_socket(daemon: Daemon) -> None:
    path = Path(daemon.notice["socket"])
    assert len(os.fsencode(path)) <= 107
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700


def test_a_second_daemon_on_the_same_state_is_refused(daemon: Daemon) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "infrarsi_runner", "serve", "--state", str(daemon.state)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert "Another runner already serves" in done.stderr
    assert "infrarsi runner stop" in done.stderr
    assert daemon.http.get("/v1/health").status_code == 200


def test_a_campaign_runs_to_its_end_and_its_events_can_be_read_again(
    daemon: Daemon, commit: str
) -> None:
    request = make_request("quick-1", commit, daemon.state)
    assert daemon.start(request).status_code == 200
    events = daemon.events("quick-1")
    states = [e.body.state for e in events if isinstance(e.body, StateChanged)]
    assert states == ["queued", "running", "finished"]
    assert [e.seq for e in events] == sorted({e.seq for e in events})
    assert daemon.events("quick-1") == events
    assert daemon.events("quick-1", after=events[1].seq) == events[2:]
    view = daemon.view("quick-1")
    assert view.state == "finished"
    assert view.verify is not None
    assert view.verify.verdict == "accepted"
    ids = [c["id"] for c in daemon.http.get("/v1/campaigns").json()["campaigns"]]
    assert "quick-1" in ids


def test_a_stream_is_taken_up_behind_the_last_event_id(daemon: Daemon, commit: str) -> None:
    daemon.start(make_request("quick-2", commit, daemon.state))
    events = daemon.events("quick-2")
    headers = {"Last-Event-ID": str(events[0].seq)}
    text = daemon.http.get("/v1/events?campaign=quick-2", headers=headers).text
    ids = [line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: ")]
    assert ids == [str(e.seq) for e in events[1:]]


def test_the_same_request_again_is_the_same_campaign(daemon: Daemon, commit: str) -> None:
    request = make_request("quick-3", commit, daemon.state)
    daemon.start(request)
    daemon.events("quick-3")
    assert daemon.start(request).json()["state"] == "finished"
    other = request.model_copy(update={"seed": 7})
    assert "another request" in refusal(daemon.start(other), 400).what


@pytest.mark.parametrize(
    ("campaign", "code", "what"),
    [("fail-1", 2, "The untouched baseline crashes."), ("bug-1", 3, "InfraRSI itself failed:")],
)
def test_a_failure_says_what_and_what_to_do(
    daemon: Daemon, commit: str, campaign: str, code: int, what: str
) -> None:
    daemon.start(make_request(campaign, commit, daemon.state))
    end = daemon.end_of(campaign)
    assert (end.state, end.exit_code) == ("failed", code)
    assert end.what.startswith(what)
    assert end.do
    assert daemon.view(campaign).what == end.what


def test_a_mistake_of_ours_is_in_the_log_with_its_trace(daemon: Daemon, commit: str) -> None:
    daemon.start(make_request("bug-2", commit, daemon.state))
    daemon.end_of("bug-2")
    log = (daemon.state / "runner.log").read_text()
    assert "Traceback" in log
    assert "a mistake of ours" in log


def test_a_running_campaign_is_stopped_with_its_job(daemon: Daemon, commit: str) -> None:
    daemon.start(make_request("wait-1", commit, daemon.state))
    daemon.start(make_request("quick-queued", commit, daemon.state))
    daemon.events("wait-1", until=lambda e: isinstance(e.body, StateChanged))
    wait_for_a_run(daemon.state)
    assert daemon.http.get("/v1/health").json()["running"] == "wait-1"
    assert daemon.http.post("/v1/campaigns/quick-queued/stop").json()["state"] == "stopped"
    daemon.http.post("/v1/campaigns/wait-1/stop")
    assert daemon.end_of("wait-1").state == "stopped"
    assert processes_of_runs(daemon.state) == []
    assert daemon.end_of("quick-queued").state == "stopped"


def test_predictions_are_the_newest_published(daemon: Daemon, commit: str) -> None:
    assert refusal(daemon.http.get("/v1/predictions/none"), 404).do
    daemon.start(make_request("publish-1", commit, daemon.state))
    tables = [e for e in daemon.events("publish-1") if e.body.kind == "table"]
    assert len(tables) == 2
    digest = "d" * 64
    text = daemon.http.get(f"/v1/predictions/{digest}").text
    assert PredictionTable.model_validate_json(text).version == 2


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b"\xff", b'{"id": 1}', b"[" * 100_000],
)
def test_what_is_no_request_is_refused(daemon: Daemon, body: bytes) -> None:
    answer = daemon.http.post("/v1/campaigns", content=body)
    assert "not a StartCampaign" in refusal(answer, 400).what


def test_unknown_fields_are_refused(daemon: Daemon, commit: str) -> None:
    raw = json.loads(make_request("quick-9", commit, daemon.state).model_dump_json())
    answer = daemon.http.post("/v1/campaigns", content=json.dumps({**raw, "sandbox": "off"}))
    assert "sandbox" in refusal(answer, 400).what


@pytest.mark.parametrize("campaign", ["../../etc", "a/b", "", ".hidden", "x" * 65, "a\nb"])
def test_an_id_that_is_no_name_is_refused(daemon: Daemon, commit: str, campaign: str) -> None:
    refusal(daemon.start(make_request(campaign, commit, daemon.state)), 400)


def test_a_commit_that_was_not_sent_is_refused(daemon: Daemon) -> None:
    answer = daemon.start(make_request("quick-8", "1" * 40, daemon.state))
    assert "does not hold commit" in refusal(answer, 400).what


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/campaigns/none", 404),
        ("POST", "/v1/campaigns/none/stop", 404),
        ("GET", "/v1/events?campaign=none", 404),
        ("GET", "/v1/events?after=x", 400),
        ("GET", "/v1/nothing", 404),
        ("GET", "/docs", 404),
        ("DELETE", "/v1/campaigns", 405),
        ("PUT", "/v1/objects", 400),
    ],
)
def test_every_refusal_is_one(daemon: Daemon, method: str, path: str, status: int) -> None:
    assert refusal(daemon.http.request(method, path), status).what


def test_a_signal_ends_it_and_leaves_the_campaign_to_be_resumed(tmp_path: Path) -> None:
    with Daemon(tmp_path / "state") as daemon:
        commit = daemon.send_commit(tmp_path / "user")
        daemon.start(make_request("wait-1", commit, tmp_path))
        wait_for_a_run(daemon.state)
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(30) == 0
        assert processes_of_runs(daemon.state) == []
        assert not Path(daemon.notice["socket"]).exists()
        assert not (daemon.state / "runner.json").exists()
    with Daemon(tmp_path / "state") as daemon:
        assert daemon.view("wait-1").state == "running"
        found = daemon.events("wait-1", until=lambda e: isinstance(e.body, Progressed))
        assert found[-1].body.kind == "progress"
        daemon.http.post("/v1/shutdown")
        assert daemon.process.wait(30) == 0


def test_it_leaves_by_itself_when_idle(tmp_path: Path) -> None:
    with Daemon(tmp_path / "state", "0.3") as daemon:
        assert daemon.process.wait(30) == 0


def test_it_imports_no_torch() -> None:
    code = "import sys, infrarsi_runner.serve; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert "torch" not in PROGRAM.read_text()
