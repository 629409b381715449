"""The contract two folders are compared under: before's lock, or what before itself says."""

from dataclasses import dataclass
from pathlib import Path

from infrarsi.contract import (
    Config,
    JobConfig,
    Lock,
    TaskContract,
    make_lock,
    parse_config,
    read_locks,
)
from infrarsi.errors import UsageError
from infrarsi.launch import Launch, parse_launch
from infrarsi.reading import default_job, propose_contract, read
from infrarsi_server.operations.launches import find_launch
from infrarsi_server.operations.lock import hash_locked_files, read_contract
from infrarsi_server.operations.project import read_file
from infrarsi_server.workspace.files import FolderSources
from infrarsi_server.workspace.root import CONFIG_NAME, LOCK_NAME

NO_COMMIT = "0" * 40
"""The baseline commit of a contract that was inferred from a folder."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Two folders of one job. `notes` say where the contract comes from."""

    before: FolderSources
    after: FolderSources
    lock: Lock
    after_launch: Launch
    python: str | None
    notes: tuple[str, ...]


def open_sides(before: Path, after: Path, launch: str | None, job: str | None) -> Sides:
    """Open both folders.

    Args:
        before: the baseline; its lock counts where it has one.
        after: the change.
        launch: how both are launched; None takes before's own and after's own.
        job: the job, where before has several.

    Raises:
        UsageError: a folder, a job or a launch line is missing.
        ConfigError: a file of ours in before cannot be used.
    """
    for folder in (before, after):
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder.", "Name an existing folder.")
    left, right = FolderSources(before), FolderSources(after)
    asked = None if launch is None else parse_launch(launch)
    config = _config(before)
    lock = _lock_of(before, config, job)
    if lock is not None and asked in (None, lock.contract.launch):
        notes = (f"Contract: the lock of job `{lock.contract.job}` in {before}.",)
    else:
        notes = (f"Contract: as read from {before}; nothing is locked there.",)
        lock = _infer(left, config, job, asked)
    return Sides(
        before=left,
        after=right,
        lock=lock,
        after_launch=asked or _launch_of(after, lock),
        python=config.jobs[lock.contract.job].python if lock.contract.job in config.jobs else None,
        notes=notes,
    )


def after_contract(sides: Sides) -> TaskContract:
    """The contract after's own source would have, under before's scope."""
    launch = sides.after_launch
    reading = read(sides.after, launch)
    job = default_job(sides.lock.contract.job, launch, reading, "python")
    scope = sides.lock.contract.scope
    proposed = propose_contract(job, launch, reading)
    return proposed.model_copy(update={"scope": scope})


def _config(folder: Path) -> Config:
    text = read_file(folder / CONFIG_NAME)
    return Config() if text is None else parse_config(text)


def _lock_of(folder: Path, config: Config, name: str | None) -> Lock | None:
    text = read_file(folder / LOCK_NAME)
    locks = {} if text is None else read_locks(text)
    if name is not None:
        if locks and name not in {*locks, *config.jobs}:
            raise UsageError(f"There is no job `{name}` in {folder}.", "Name one of its jobs.")
        return locks.get(name)
    if len(locks) > 1:
        raise UsageError(f"There are several jobs: {', '.join(locks)}.", "Name one with --job.")
    return next(iter(locks.values()), None)


def _infer(sources: FolderSources, config: Config, name: str | None, asked: Launch | None) -> Lock:
    job = _job(sources, config, name, asked)
    contract = read_contract(job, sources)
    hashes = hash_locked_files(sources.root, sources, contract.scope.locked)
    return make_lock(contract, hashes, NO_COMMIT)


def _job(
    sources: FolderSources, config: Config, name: str | None, asked: Launch | None
) -> JobConfig:
    fitting = [
        job
        for job in config.jobs.values()
        if name in (None, job.name) and asked in (None, parse_launch(job.launch))
    ]
    if len(fitting) > 1:
        listed = ", ".join(job.name for job in fitting)
        raise UsageError(f"There are several jobs: {listed}.", "Name one with --job.")
    if fitting:
        return fitting[0]
    launch = asked or find_launch(sources)
    if sources.text(launch.script) is None:
        raise UsageError(
            f"The script {launch.script} is not in {sources.root}.",
            "Name it relative to that folder.",
        )
    return default_job(name or "main", launch, read(sources, launch), "python", sources)


def _launch_of(folder: Path, lock: Lock) -> Launch:
    """After's own launch line of the job, where after has one that is understood."""
    job = _config(folder).jobs.get(lock.contract.job)
    return lock.contract.launch if job is None else parse_launch(job.launch)
