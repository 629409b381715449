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
from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.errors import LaunchRefused, UsageError
from infrarsi.launch import Launch, parse_launch
from infrarsi.place import Place
from infrarsi.reading import bare_job, default_job, propose_contract, read
from infrarsi_server.operations.launches import file_launch, find_launch, launch_file
from infrarsi_server.operations.lock import hash_locked_files, read_contract
from infrarsi_server.operations.project import read_file
from infrarsi_server.workspace.files import FolderSources
from infrarsi_server.workspace.root import CONFIG_NAME, LOCK_NAME

NO_COMMIT = "0" * 40
"""The baseline commit of a contract that was inferred from a folder."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Two folders of one job. `notes` say where the contract comes from.

    Where after's launch line is refused, `refused` is the violation, and where it is not
    understood, `unclear` says so; `after_launch` is before's then, for reading only.
    """

    before: FolderSources
    after: FolderSources
    lock: Lock
    after_launch: Launch
    python: str | None
    notes: tuple[str, ...]
    refused: Violation | None = None
    unclear: str | None = None


def open_sides(before: Path, after: Path, launch: str | None, job: str | None) -> Sides:
    """Open both folders.

    Args:
        before: the baseline; its lock counts where it has one.
        after: the change.
        launch: how both are launched; None takes each folder's own (its `infrarsi.toml`, its
            launch file, else the one script that trains).
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
    after_launch, refused, unclear = _after_launch(right, lock, asked)
    return Sides(
        before=left,
        after=right,
        lock=lock,
        after_launch=after_launch or lock.contract.launch,
        python=config.jobs[lock.contract.job].python if lock.contract.job in config.jobs else None,
        notes=notes,
        refused=refused,
        unclear=unclear,
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
    reading = read(sources, launch)
    return bare_job(name or "main", launch, reading, sources, launch_file(sources))


def _after_launch(
    after: FolderSources, lock: Lock, asked: Launch | None
) -> tuple[Launch | None, Violation | None, str | None]:
    """After's launch, or the violation its launch line is, or why it is not understood."""
    try:
        launch = asked or _own_launch(after, lock)
    except LaunchRefused as error:
        return None, violation(error.code, error.what, place=_file_place(after, error)), None
    except UsageError as error:
        inner = error.__context__
        if isinstance(inner, LaunchRefused):
            return None, violation(inner.code, inner.what), None
        return None, None, f"After's launch line is not understood. {error}"
    if after.text(launch.script) is None:
        return None, None, f"The script {launch.script} that after launches is not there."
    return launch, None, None


def _file_place(after: FolderSources, error: LaunchRefused) -> Place | None:
    """The launch file, where the error is about it."""
    name = launch_file(after)
    if name is None or not error.what.startswith(f"{name}: "):
        return None
    return Place(file=name, line=1, end_line=1, end_column=1)


def _own_launch(after: FolderSources, lock: Lock) -> Launch:
    """After's own launch line: of its job, of its launch file, else before's."""
    job = _config(after.root).jobs.get(lock.contract.job)
    if job is not None:
        return parse_launch(job.launch)
    return file_launch(after) or lock.contract.launch
