"""SIGKILL at any moment loses nothing and doubles nothing; a full disk leaves the journal whole."""

import shutil
from pathlib import Path

import pytest
from daemons import Daemon, make_request
from stub_runs import processes_of_runs, wait_for_a_run

from infrarsi.wire.messages import Event, TrialEnded

N_TRIALS = 4


def trial_numbers(events: list[Event]) -> list[int]:
    return [e.body.trial.number for e in events if isinstance(e.body, TrialEnded)]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_a_killed_daemon_is_resumed_with_every_trial_exactly_once(
    tmp_path: Path, sandbox: str
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "host.toml").write_text(f'sandbox = "{sandbox}"\n')
    with Daemon(state) as daemon:
        commit = daemon.send_commit(tmp_path / "user")
        daemon.start(make_request("runs-1", commit, tmp_path))
        seen = daemon.events("runs-1", until=lambda e: isinstance(e.body, TrialEnded))
        wait_for_a_run(state)
        daemon.kill()
    with Daemon(state) as daemon:
        events = daemon.events("runs-1")
        view = daemon.view("runs-1")
    assert events[: len(seen)] == seen
    assert trial_numbers(events) == [1, 2, 3, 4]
    assert view.verify is not None
    assert view.verify.missing == tuple(f"{n} completed" for n in range(1, N_TRIALS + 1))
    assert processes_of_runs(state) == []
    assert all(not (run / "tree").exists() for run in (state / "runs" / "runs-1").iterdir())


def test_a_job_of_a_killed_daemon_is_ended_by_the_next(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "host.toml").write_text('sandbox = "off"\n')
    with Daemon(state) as daemon:
        commit = daemon.send_commit(tmp_path / "user")
        daemon.start(make_request("wait-1", commit, tmp_path))
        wait_for_a_run(state)
        daemon.kill()
    with Daemon(state) as daemon:
        daemon.http.post("/v1/campaigns/wait-1/stop")
        assert daemon.end_of("wait-1").state == "stopped"
        assert processes_of_runs(state) == []


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for a small disk")
def test_a_full_disk_fails_the_campaign_and_leaves_the_journal_whole(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    disk = (
        "bwrap",
        "--die-with-parent",
        "--dev-bind",
        "/",
        "/",
        "--size",
        str(6 << 20),
        "--tmpfs",
        str(state),
    )
    with Daemon(state, wrapper=disk) as daemon:
        commit = daemon.send_commit(tmp_path / "user")
        daemon.start(make_request("fill-1", commit, tmp_path))
        end = daemon.end_of("fill-1")
        assert (end.state, end.exit_code) == ("failed", 3)
        assert end.what == f"The disk that holds {state} is full."
        assert "Free some space" in end.do
        assert daemon.view("fill-1").state == "failed"
        refused = daemon.http.put("/v1/objects", content=b"\0" * (8 << 20))
        assert refused.status_code == 409
        assert "is full" in refused.json()["what"]
        assert daemon.http.get("/v1/health").status_code == 200
