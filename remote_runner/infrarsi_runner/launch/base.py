"""What every launcher does. A command is data; only a launcher makes processes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol


@dataclass(frozen=True, kw_only=True)
class Command:
    """One process to start: argv, never a shell line. `env` is the whole environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Names a started job for good, also after the daemon was started anew."""

    pid: int
    start_time: int


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the outermost process ended; `cpu_s` counts the descendants it waited for."""

    exit_code: int
    cpu_s: float


class Launcher(Protocol):
    """Four methods; one class for each kind of place a job can run in."""

    def start(self, command: Command) -> tuple[Identity, IO[bytes]]:
        """Start it in a session of its own; answer who it is and its merged output."""
        ...

    def poll(self, job: Identity) -> Ended | None:
        """How it ended, or None while it runs."""
        ...

    def kill(self, job: Identity) -> None:
        """End it and everything it started; returns once nothing of it is left."""
        ...

    def running(self, job: Identity) -> bool:
        """Whether that very job still runs, whoever started it."""
        ...
