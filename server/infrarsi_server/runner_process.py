"""The daemon on this machine: where it is, starting it on demand, stopping it.

It is started as a process of its own and never imported: its libraries may not be installed here.
"""

import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast

from infrarsi.errors import RunnerError, RunnerUnreachable
from infrarsi.report.printable import one_line
from infrarsi_server.runner_client import RunnerClient

STATE_ENV = "INFRARSI_STATE"
_START_TIMEOUT_S = 30.0
_OTHER_TIMEOUT_S = 3.0
"""Ours ended: perhaps because another client has just started one that is not up yet."""
_POLL_S = 0.05


def state_folder(environ: Mapping[str, str]) -> Path:
    """`$INFRARSI_STATE`, else the user's state folder."""
    if named := environ.get(STATE_ENV):
        return Path(named).absolute()
    base = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base, "infrarsi")


def find_runner(state: Path) -> RunnerClient | None:
    """The daemon of that state folder, or None where none answers.

    Raises:
        VersionMismatch: one answers and speaks another protocol.
    """
    socket = _socket(state)
    if socket is None:
        return None
    client = RunnerClient(socket)
    try:
        client.health()
    except RunnerUnreachable:
        client.close()
        return None
    return client


def need_runner(state: Path) -> RunnerClient:
    """The daemon of that state folder, started if none answers.

    Raises:
        RunnerUnreachable: it cannot be started, or does not come up.
        VersionMismatch: one answers and speaks another protocol.
    """
    return find_runner(state) or _start(state)


def end_noted_runner(state: Path) -> int | None:
    """End the daemon that the state folder's note names, whatever protocol it speaks; its pid.

    It is asked first. Where it does not take that, its process is signalled, provided that it is
    a runner on this machine. None where there is none.

    Raises:
        RunnerError: something answers and cannot be ended.
    """
    socket, pid = _socket(state), _noted_pid(state)
    if socket is None:
        return None
    has_answered = True
    with RunnerClient(socket) as client:
        try:
            if client.dismiss():
                return pid
        except RunnerUnreachable:
            has_answered = False
        except RunnerError:
            pass
    if pid is not None and _signal_runner(pid):
        return pid
    if has_answered:
        raise RunnerError(f"What answers at {socket} cannot be ended.", "End its process yourself.")
    return None


def serve_command() -> list[str]:
    """The argv that runs the daemon in the foreground.

    Raises:
        RunnerUnreachable: the runner is not installed beside this package.
    """
    missing = [
        name
        for name in ("infrarsi_runner", "fastapi", "uvicorn", "sqlalchemy", "psutil")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RunnerUnreachable(
            f"No runner answers and none can be started: {', '.join(missing)} not installed.",
            "Run: pip install 'infrarsi[runner]'",
        )
    return [sys.executable, "-m", "infrarsi_runner", "serve"]


def serve_environment(state: Path) -> dict[str, str]:
    """The daemon's environment: this one with the state folder named."""
    return {**os.environ, STATE_ENV: str(state)}


def log_path(state: Path) -> Path:
    """What a daemon started on demand writes to."""
    return state / "runner.log"


def _note(state: Path) -> dict[str, object]:
    try:
        noted = json.loads((state / "runner.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, object]", noted) if isinstance(noted, dict) else {}


def _socket(state: Path) -> Path | None:
    path = _note(state).get("socket")
    return Path(path) if isinstance(path, str) else None


def _noted_pid(state: Path) -> int | None:
    """The noted process, where it was started on this machine."""
    note = _note(state)
    pid, host = note.get("pid"), note.get("host", platform.node())
    return pid if isinstance(pid, int) and pid > 1 and host == platform.node() else None


def _signal_runner(pid: int) -> bool:
    """Ask a process to end if it runs the daemon; whether it does."""
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"infrarsi_runner" not in argv:
            return False
        os.kill(pid, signal.SIGTERM)
    except OSError:
        return False
    return True


def _start(state: Path) -> RunnerClient:
    argv = serve_command()
    log = _open_log(state)
    with log:
        process = subprocess.Popen(
            argv,
            cwd="/",
            env=serve_environment(state),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()
    return _wait(state, process)


def _wait(state: Path, process: subprocess.Popen[bytes]) -> RunnerClient:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        has_ended = process.returncode is not None
        if client := find_runner(state):
            return client
        if has_ended:
            deadline = min(deadline, time.monotonic() + _OTHER_TIMEOUT_S)
        time.sleep(_POLL_S)
    if process.returncode is not None:
        raise RunnerUnreachable(f"The runner ended at once: {_last_line(state)}", _see(state))
    raise RunnerUnreachable(
        f"The runner was started and did not answer within {_START_TIMEOUT_S:.0f} s.", _see(state)
    )


def _open_log(state: Path) -> IO[bytes]:
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        return log_path(state).open("ab")
    except OSError as error:
        raise RunnerUnreachable(
            f"The runner's folder {state} cannot be written: {error.strerror}.",
            f"Free or mend it, or set {STATE_ENV} to another folder.",
        ) from error


def _see(state: Path) -> str:
    return f"See {log_path(state)}."


def _last_line(state: Path) -> str:
    lines = [line for line in log_path(state).read_text(errors="replace").splitlines() if line]
    told = [line for line in lines[-2:] if line.startswith("error: ")]
    return one_line((told or lines[-1:] or ["it said nothing."])[0].removeprefix("error: "))
