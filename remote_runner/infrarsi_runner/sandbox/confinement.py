"""What a job may see and write, in words every sandbox understands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

Level = str
"""`bubblewrap`, `landlock` or `off`; recorded with every run."""


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """Paths are absolute and exist. What is not named is not there, or cannot be opened.

    `etc` is a folder whose files stand in for those of the same name in /etc. `mounts` show a
    folder at another path, writable, where the sandbox can (see `Sandbox.can_mount`).
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    mounts: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    tmp: Path
    etc: Path | None = None
    cwd: Path


class Sandbox(Protocol):
    """One way to confine a process tree."""

    level: Level
    can_mount: bool
    """Whether `mounts` are honoured; where they are not, a job runs at its folder's own path."""

    def wrap(self, argv: tuple[str, ...], confinement: Confinement) -> tuple[str, ...]:
        """The argv that runs `argv` confined. The environment is passed on as it is."""
        ...

    def tmp(self, confinement: Confinement) -> Path:
        """Where the job finds its private folder for temporary files."""
        ...
