"""The surroundings of a campaign's runs: where they write, what confines them, who is told."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from infrarsi_runner.interpreter import Interpreter, ask_interpreter
from infrarsi_runner.launch.base import Identity, Launcher
from infrarsi_runner.sandbox import Sandbox
from infrarsi_runner.stopping import StopFlag


class Ledger(Protocol):
    """Remembers which jobs are alive, for a daemon that comes after this one."""

    def started(self, job: Identity, folder: Path) -> None:
        """The job exists."""
        ...

    def ended(self, job: Identity) -> None:
        """Nothing of the job exists any more."""
        ...


class NoLedger:
    """For a runner that nobody comes after."""

    def started(self, job: Identity, folder: Path) -> None:
        """Not kept."""

    def ended(self, job: Identity) -> None:
        """Not kept."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Everything a run needs besides its spec.

    `runs` is the campaign's folder for runs, `sockets` a short private folder. `probe` is the
    folder of the probe's package. `readable` are more paths that jobs may read. `workspace` is
    the user's folder that editable roots lie in. `hash_key` is shared by runs to be compared.
    """

    runs: Path
    sockets: Path
    probe: Path
    workspace: Path
    sandbox: Sandbox
    launcher: Launcher
    stop: StopFlag
    clock: Callable[[], float]
    daemon_environment: Mapping[str, str]
    ledger: Ledger = field(default_factory=NoLedger)
    readable: tuple[Path, ...] = ()
    hash_key: str = field(default_factory=lambda: secrets.token_hex(16))
    interpreters: dict[str, Interpreter] = field(default_factory=dict[str, Interpreter])

    def interpreter(self, python: str) -> Interpreter:
        """What that Python says of itself, asked once."""
        if python not in self.interpreters:
            self.interpreters[python] = ask_interpreter(python, self.sandbox)
        return self.interpreters[python]
