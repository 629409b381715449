"""A workspace opened for an operation: its `infrarsi.toml`, its locks, its texts."""

import errno
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infrarsi.contract import Config, JobConfig, Lock, parse_config, read_locks
from infrarsi.errors import ConfigError, RunnerError, UsageError
from infrarsi.launch import Launch, parse_launch
from infrarsi_server.workspace.files import FolderSources
from infrarsi_server.workspace.root import CONFIG_NAME, LOCK_NAME, find_root

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


@dataclass(frozen=True)
class Project:
    """The workspace at `root` as it is on disk now."""

    root: Path
    config: Config
    locks: Mapping[str, Lock]
    sources: FolderSources

    def job(self, name: str | None) -> JobConfig:
        """The named job, or the only one.

        Raises:
            UsageError: there is none of that name, none at all, or more than one to choose from.
        """
        jobs = self.config.jobs
        if name is not None and name in jobs:
            return jobs[name]
        if name is None and len(jobs) == 1:
            return next(iter(jobs.values()))
        known = ", ".join(sorted(jobs))
        if not jobs:
            raise UsageError(f"No job is set up in {self.root}.", "Run: infrarsi init")
        if name is None:
            raise UsageError(f"There are several jobs: {known}.", "Name one with --job.")
        raise UsageError(f"There is no job `{name}`; there are {known}.", "Name one of these.")

    def lock(self, name: str | None) -> Lock:
        """The lock of the named job, or of the only one.

        Raises:
            UsageError: the job is not locked, or its launch line was changed since.
        """
        job = self.job(name)
        lock = self.locks.get(job.name)
        if lock is None:
            raise UsageError(f"Job `{job.name}` is not locked.", "Run: infrarsi lock")
        if parse_launch(job.launch) != lock.contract.launch:
            raise UsageError(
                f"The launch line of job `{job.name}` in {CONFIG_NAME} is not the locked one.",
                "Put it back, or run `infrarsi lock` to agree to the new one.",
            )
        return lock

    def launch(self, lock: Lock) -> Launch:
        """How a locked job is launched now: as `infrarsi.toml` says, else as it was locked."""
        job = self.config.jobs.get(lock.contract.job)
        return lock.contract.launch if job is None else parse_launch(job.launch)


def open_project(start: Path) -> Project:
    """Open the workspace that `start` is in.

    Raises:
        UsageError: there is no such folder.
        ConfigError: `infrarsi.toml` or the lock file cannot be used.
    """
    return _open(find_root(start), _read_locks)


def open_with_usable_locks(start: Path) -> Project:
    """The same, with no locks where the lock file cannot be used.

    For what does not stand on the locks: locking writes them anew, a report has its own.
    """

    def locks_if_usable(root: Path) -> Mapping[str, Lock]:
        try:
            return _read_locks(root)
        except ConfigError:
            return {}

    return _open(find_root(start), locks_if_usable)


def _open(root: Path, read_locks_of: Callable[[Path], Mapping[str, Lock]]) -> Project:
    text = read_file(root / CONFIG_NAME)
    return Project(
        root=root,
        config=Config() if text is None else parse_config(text),
        locks=read_locks_of(root),
        sources=FolderSources(root),
    )


def _read_locks(root: Path) -> Mapping[str, Lock]:
    text = read_file(root / LOCK_NAME)
    return {} if text is None else read_locks(text)


def read_file(path: Path) -> str | None:
    """A file of ours as text, line ends kept, or None where there is none.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Mend or remove it.") from error


def write_file(path: Path, text: str) -> None:
    """Write a file of ours, whole or not at all.

    Raises:
        UsageError: it may not be written.
        RunnerError: the disk does not take it.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        what = f"{path} cannot be written: {error.strerror}."
        if error.errno in _DISK_ERRORS:
            raise RunnerError(what, "Make room on that disk.") from error
        raise UsageError(what, "Mend its permissions, or name another path.") from error
