"""Where the daemon keeps what it must not lose, and where its socket lies.

    <state>/journal.sqlite  objects.git/  runs/  trees/  host.toml  runner.json  runner.log  lock
    <runtime>/socket        short path, for unix sockets hold 107 bytes; private to the user

The state may lie on a shared file system; the runtime folder never does.
"""

import fcntl
import hashlib
import json
import os
import platform
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import RunnerError

STATE_ENV = "INFRARSI_STATE"
_SOCKET_LIMIT_BYTES = 107


@dataclass(frozen=True)
class State:
    """The state folder and the paths in it."""

    root: Path

    @property
    def journal(self) -> Path:
        """The SQLite file."""
        return self.root / "journal.sqlite"

    @property
    def objects(self) -> Path:
        """The bare git store."""
        return self.root / "objects.git"

    @property
    def log(self) -> Path:
        """What the daemon writes to."""
        return self.root / "runner.log"

    @property
    def notice(self) -> Path:
        """Says which daemon serves this state, and on which socket."""
        return self.root / "runner.json"

    def runs(self, campaign: str) -> Path:
        """The folder of a campaign's runs."""
        return self.root / "runs" / campaign

    def trees(self, campaign: str) -> Path:
        """The folder of a campaign's trees."""
        return self.root / "trees" / campaign


def state_folder(environment: Mapping[str, str]) -> Path:
    """`$INFRARSI_STATE`, else `infrarsi` in the user's folder for state."""
    if named := environment.get(STATE_ENV):
        return Path(named).absolute()
    base = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base, "infrarsi")


def open_state(root: Path) -> State:
    """The state below `root`, made private if it is new.

    Raises:
        RunnerError: the folder cannot be made or written.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("runs", "trees"):
            (root / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise RunnerError(
            f"The runner's folder {root} cannot be written: {error.strerror}.",
            f"Mend it, or set {STATE_ENV} to another folder.",
        ) from error
    return State(root.resolve())


def lock_state(state: State) -> int:
    """Take the state for this process for as long as the descriptor is open.

    Raises:
        RunnerError: another daemon serves it.
    """
    descriptor = os.open(state.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise RunnerError(
            f"Another runner already serves {state.root}.",
            "Use that one, or end it with `infrarsi runner stop`.",
        ) from error
    return descriptor


def runtime_folder(state: State, environment: Mapping[str, str]) -> Path:
    """A short folder for sockets, mode 0700 and owned by this user.

    Raises:
        RunnerError: somebody else owns a folder of that name, or it is open to others.
    """
    digest = hashlib.sha256(str(state.root).encode()).hexdigest()[:12]
    candidates = [Path("/tmp") / f"infrarsi-{os.getuid()}-{digest}"]  # noqa: S108
    if base := environment.get("XDG_RUNTIME_DIR"):
        candidates.insert(0, Path(base) / f"infrarsi-{digest}")
    for path in candidates:
        short = len(os.fsencode(path / "00000000" / "c")) <= _SOCKET_LIMIT_BYTES
        if short and path.parent.is_dir() and os.access(path.parent, os.W_OK):
            return _private(path)
    raise RunnerError("There is no folder for a socket.", "Set XDG_RUNTIME_DIR to a short path.")


def write_notice(state: State, socket: Path, version: str) -> dict[str, str | int]:
    """Say who serves this state: written whole or not at all."""
    notice: dict[str, str | int] = {
        "socket": str(socket),
        "pid": os.getpid(),
        "host": platform.node(),
        "version": version,
    }
    draft = state.notice.with_suffix(".draft")
    draft.write_text(json.dumps(notice) + "\n", encoding="utf-8")
    draft.replace(state.notice)
    return notice


def _private(path: Path) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise RunnerError(f"{path} belongs to somebody else.", "Set XDG_RUNTIME_DIR.")
    if status.st_mode & 0o077:
        path.chmod(0o700)
    return path
