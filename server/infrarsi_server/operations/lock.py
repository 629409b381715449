"""Lock: freeze the contracts of a workspace under a digest, with locked files and baseline."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from infrarsi.contract import Fact, JobConfig, Lock, TaskContract, make_lock, matches, write_locks
from infrarsi.errors import UsageError
from infrarsi.frozen import Frozen
from infrarsi.launch import parse_launch
from infrarsi.reading import Sources, propose_contract, read
from infrarsi_server.operations.project import Project, read_file, write_file
from infrarsi_server.workspace.root import LOCK_NAME, Repository, need_repository


class LockedJob(Frozen):
    """One job's lock. `unknown` are facts the contract cannot hold because they are not known."""

    job: str
    digest: str
    baseline_commit: str
    changed: bool
    n_locked_files: int
    unknown: tuple[Fact, ...] = ()


class LockResult(Frozen):
    """The lock file. `uncommitted` are files that differ from the baseline commit."""

    root: str
    lock: str
    written: bool
    jobs: tuple[LockedJob, ...]
    uncommitted: tuple[str, ...] = ()


def lock_jobs(project: Project, name: str | None = None) -> LockResult:
    """Freeze every job, or the named one.

    A lock whose contract, locked files and baseline sources are as before is kept as it is, so
    that what was measured under it stays valid.

    Raises:
        UsageError: no repository, no commit, no job, or a script that is not there.
    """
    repository = need_repository(project.root)
    jobs = project.config.jobs.values() if name is None and project.config.jobs else ()
    made = {job.name: _lock(project, repository, job) for job in jobs or (project.job(name),)}
    text = write_locks({**_kept(project), **made})
    written = text != read_file(project.root / LOCK_NAME)
    if written:
        write_file(project.root / LOCK_NAME, text)
    return LockResult(
        root=str(project.root),
        lock=LOCK_NAME,
        written=written,
        jobs=tuple(_locked_job(project, lock) for lock in made.values()),
        uncommitted=_uncommitted(project.root, repository),
    )


def hash_locked_files(root: Path, sources: Sources, globs: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 in hexadecimal of every file the globs lock, by path."""
    return {path: hash_file(root / path) for path in sources.paths() if matches(path, globs)}


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes in hexadecimal.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Mend its permissions."
        ) from error


def read_contract(job: JobConfig, sources: Sources) -> TaskContract:
    """The contract of a job as it stands.

    Raises:
        UsageError: the launch line's script is not there.
    """
    launch = parse_launch(job.launch)
    if sources.text(launch.script) is None:
        raise UsageError(
            f"The script {launch.script} of job `{job.name}` is not there.",
            "Mend `launch` in infrarsi.toml.",
        )
    return propose_contract(job, launch, read(sources, launch, n_cpus=os.cpu_count() or 1))


def _lock(project: Project, repository: Repository, job: JobConfig) -> Lock:
    contract = read_contract(job, project.sources)
    hashes = hash_locked_files(project.root, project.sources, contract.scope.locked)
    new = make_lock(contract, hashes, repository.git().text("rev-parse", "HEAD"))
    old = project.locks.get(job.name)
    is_same = old is not None and (old.contract, old.locked_files) == (contract, hashes)
    return old if old and is_same and _same_baseline(repository, project, old, new) else new


def _same_baseline(repository: Repository, project: Project, old: Lock, new: Lock) -> bool:
    launch = new.contract.launch
    files = [repository.path(file) for file in read(project.sources, launch).files]
    commits = (old.baseline_commit, new.baseline_commit)
    return repository.git().succeeds("diff", "--quiet", *commits, "--", *files)


def _kept(project: Project) -> Mapping[str, Lock]:
    return {name: lock for name, lock in project.locks.items() if name in project.config.jobs}


def _locked_job(project: Project, lock: Lock) -> LockedJob:
    old = project.locks.get(lock.contract.job)
    return LockedJob(
        job=lock.contract.job,
        digest=lock.digest,
        baseline_commit=lock.baseline_commit,
        changed=old is None or old.digest != lock.digest,
        n_locked_files=len(lock.locked_files),
        unknown=tuple(fact for fact in lock.contract.facts if fact.unknown is not None),
    )


def _uncommitted(root: Path, repository: Repository) -> tuple[str, ...]:
    listed = repository.git().names(
        "status", "--porcelain", "-z", "--no-renames", "--", repository.prefix or "."
    )
    files = (entry[3:].removeprefix(repository.prefix) for entry in listed)
    return tuple(sorted(f for f in files if f != LOCK_NAME and not f.startswith(".infrarsi")))
