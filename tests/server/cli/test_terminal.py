import signal
import sys
from pathlib import Path

import pytest
import recorded_results as recorded
from command_line import Terminal
from jobs import JOB
from repositories import make_repository
from rich.console import Console
from scripted_campaign import campaign_events, campaign_view, scripted_campaign

from infrarsi.contract import make_lock, write_locks
from infrarsi.errors import UsageError
from infrarsi.wire.messages import Event, TrialEnded
from infrarsi_server.cli.live import LiveProgress, PlainProgress, progress_on
from infrarsi_server.cli.output import say, write_error, write_lines

LOCK = make_lock(recorded.make_contract(), {}, "0" * 40)
FILES = {
    "train.py": recorded.TRAIN,
    "infrarsi.toml": f'[job.main]\nlaunch = "python train.py"\npython = "{sys.executable}"\n',
    ".infrarsi/contract.lock.json": write_locks({"main": LOCK}),
}


@pytest.mark.parametrize(
    ("typed", "told", "is_stopped"),
    [("stop\n", "is stopped", True), ("\n", "goes on without you", False)],
)
def test_ctrl_c_on_a_terminal_asks_whether_to_stop_or_leave(
    root: Path, state: Path, typed: str, told: str, is_stopped: bool
) -> None:
    make_repository(root, FILES)
    with scripted_campaign(state, campaign_view("run", "running")) as scripted:
        scripted.goes_on.clear()
        terminal = Terminal(root, "run", "--id", "c1", state=state)
        terminal.wait_for("This takes about")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("[stop/leave]")
        terminal.type(typed)
        assert terminal.end() == 3
        assert (("POST", "/v1/campaigns/c1/stop") in scripted.asked) is is_stopped
    assert told in terminal.seen


def test_a_second_ctrl_c_leaves_the_campaign_running(root: Path, state: Path) -> None:
    make_repository(root, FILES)
    with scripted_campaign(state, campaign_view("run", "running")) as scripted:
        scripted.goes_on.clear()
        terminal = Terminal(root, "run", "--id", "c1", state=state)
        terminal.wait_for("This takes about")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("[stop/leave]")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 3
        assert ("POST", "/v1/campaigns/c1/stop") not in scripted.asked
    assert "goes on without you" in terminal.seen


@pytest.mark.parametrize(("typed", "writes"), [("n\n", False), ("\n", True)])
def test_init_on_a_terminal_asks_before_it_writes(
    root: Path, state: Path, typed: str, writes: bool
) -> None:
    make_repository(root, JOB)
    terminal = Terminal(root, "init", state=state)
    terminal.wait_for("Write infrarsi.toml?")
    assert not (root / "infrarsi.toml").exists()
    terminal.type(typed)
    assert terminal.end() == 0
    assert (root / "infrarsi.toml").exists() is writes


def test_ctrl_c_at_a_question_ends_without_a_traceback(root: Path, state: Path) -> None:
    make_repository(root, JOB)
    terminal = Terminal(root, "init", state=state)
    terminal.wait_for("Write infrarsi.toml?")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 3
    assert "Left by Ctrl-C" in terminal.seen
    assert "Traceback" not in terminal.seen
    assert not (root / "infrarsi.toml").exists()


def events() -> list[Event]:
    bodies = campaign_events(campaign_view("run"))
    return [Event(seq=n, campaign="c1", at_s=0.0, body=body) for n, body in enumerate(bodies)]


def test_the_live_picture_has_trials_best_and_what_is_left() -> None:
    console = Console(force_terminal=True, width=120, record=True, stderr=True)
    progress = progress_on(console)
    assert isinstance(progress, LiveProgress)
    with progress:
        for event in events():
            progress.show(event)
    console.print(progress.picture())
    shown = console.export_text()
    assert "Two runs of the baseline." in shown
    assert "out of memory, needs at least 9.00 GiB" in shown
    assert "1.00 s a step, 3.00 GiB peak" in shown
    assert "search 1/6: micro_batch=4, about 1 min 20 s left" in shown
    assert "best 2.00x, 1 out of memory" in shown


def test_without_a_terminal_each_event_is_one_line_and_none_is_said_twice() -> None:
    console = Console(force_terminal=False, width=40, record=True, stderr=True)
    progress = progress_on(console)
    assert isinstance(progress, PlainProgress)
    with progress:
        for event in [event for event in events() for _ in range(2)][2:]:
            progress.show(event)
    lines = console.export_text().splitlines()
    assert sum(line.startswith("search 1/6") for line in lines) == 1
    assert (
        sum(line.startswith("trial 2: micro_batch=4, bf16_autocast: 1.00 s") for line in lines) == 1
    )


def test_what_a_trial_changed_is_shown_and_what_it_left_is_not() -> None:
    console = Console(force_terminal=False, width=200, record=True, stderr=True)
    live = LiveProgress(Console(force_terminal=True, width=200, stderr=True))
    trial = recorded.TRIALS[-1]
    assert len(trial.candidate.setting) > 1
    ended = TrialEnded(trial=trial, changed={"bf16_autocast": True, "compile": False})
    with PlainProgress(console) as plain:
        plain.show(Event(seq=1, campaign="c1", at_s=0.0, body=ended))
    live.show(Event(seq=1, campaign="c1", at_s=0.0, body=ended))
    console.print(live.picture())
    lines = [line for line in console.export_text().splitlines() if "bf16_autocast" in line]
    assert len(lines) == 2
    assert all("bf16_autocast, compile=False" in line for line in lines)
    assert not any("micro_batch" in line for line in lines)


def test_nothing_written_can_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\x1b[2Jb")
    write_lines(["c\x1b]0;title\x07d"])
    write_error(UsageError("e\x1b[31m."), as_json=True)
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\x07" not in out
