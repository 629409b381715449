"""From a snapshot to an analysis: what reading and rules say of every locked job of a root.

Runs in a worker thread on frozen data. What it cannot use becomes a sentence, not an exception.
"""

import functools
import gc
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from weakref import WeakSet

from infrarsi.contract import LOCK_PATH, Config, Lock, parse_config, read_locks
from infrarsi.errors import InfraRSIError
from infrarsi.launch import Launch, parse_launch
from infrarsi.reading import Memory, Program, Sources, follow
from infrarsi.rules import check_change
from infrarsi_server.lsp.garbage import is_due, uncollected
from infrarsi_server.session import Analysis, JobAnalysis, Snapshot
from infrarsi_server.workspace.files import CommitSources, FolderSources, OverlaySources
from infrarsi_server.workspace.listings import Listings
from infrarsi_server.workspace.root import CONFIG_NAME, find_repository

LISTINGS = Listings()
"""The files of the roots, as far as they were looked at."""


def analyse_snapshot(snapshot: Snapshot) -> Analysis:
    """Read and check every locked job of the snapshot's root."""
    with uncollected():
        return _analyse(snapshot)


def tidy() -> None:
    """Every so often, let go of what is no more of use; for after an answer was shown."""
    if not is_due():
        return
    for memory in list(_MEMORIES):
        with memory.taken() as free:
            if free is not None:
                free.sweep()
    gc.collect()


def _analyse(snapshot: Snapshot) -> Analysis:
    on_disk = FolderSources(snapshot.root, listings=LISTINGS)
    overlay = snapshot.overlay()
    sources = OverlaySources(on_disk, overlay)
    try:
        config = _parse_config(_own_file(snapshot, CONFIG_NAME) or "")
        locks = _read_locks(_own_file(snapshot, LOCK_PATH) or "{}")
    except InfraRSIError as error:
        return Analysis(snapshot=snapshot, texts=_texts(sources, {CONFIG_NAME}), problem=str(error))
    jobs: list[JobAnalysis] = []
    for _, lock in sorted(locks.items()):
        hashes = _locked_hashes(lock, snapshot.root, on_disk, overlay)
        jobs.append(_analyse_job(snapshot.root, lock, config, sources, hashes))
    return Analysis(snapshot=snapshot, jobs=tuple(jobs), texts=_texts(sources, _files(jobs)))


_parse_config = functools.lru_cache(maxsize=32)(parse_config)
_read_locks = functools.lru_cache(maxsize=32)(read_locks)


def _own_file(snapshot: Snapshot, name: str) -> str | None:
    """A file of ours, open or on disk; read even where git ignores it."""
    document = snapshot.documents.get(snapshot.root / name)
    if document is not None:
        return document.text
    try:
        return (snapshot.root / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _analyse_job(
    root: Path, lock: Lock, config: Config, sources: Sources, hashes: Mapping[str, str]
) -> JobAnalysis:
    job = config.jobs.get(lock.contract.job)
    launch = lock.contract.launch if job is None else parse_launch(job.launch)
    was = _follow_baseline(root, lock.baseline_commit, lock.contract.launch.model_dump_json())
    with _memory(root, lock.contract.job, launch.model_dump_json()).taken() as memory:
        now = follow(sources, launch, n_cpus=os.cpu_count() or 1, memory=memory)
        violations = check_change(lock, now, was, hashes)
        return JobAnalysis(lock=lock, reading=now.reading, violations=violations)


@functools.lru_cache(maxsize=32)
def _memory(root: Path, job: str, launch_json: str) -> Memory:
    """What was found out of the job's earlier states: from one keystroke to the next."""
    del root, job, launch_json
    memory = Memory()
    _MEMORIES.add(memory)
    return memory


_MEMORIES: WeakSet[Memory] = WeakSet()


@functools.lru_cache(maxsize=32)
def _follow_baseline(root: Path, commit: str, launch_json: str) -> Program | None:
    """The sources of the baseline commit, which never changes; None where it is not there."""
    try:
        repository = find_repository(root)
        if repository is None:
            return None
        sources = CommitSources(repository, commit)
    except InfraRSIError:
        return None
    launch = Launch.model_validate_json(launch_json)
    return follow(sources, launch, n_cpus=os.cpu_count() or 1) if sources.paths() else None


def _locked_hashes(
    lock: Lock, root: Path, on_disk: Sources, overlay: Mapping[str, str]
) -> dict[str, str]:
    """SHA-256 of the locked files as the editor shows them, "" for one that is gone."""
    return {
        path: _hash_text(overlay[path])
        if path in overlay and overlay[path] != (on_disk.text(path) or "").removeprefix("\ufeff")
        else _hash_file(root / path)
        for path in lock.locked_files
    }


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _hash_file(path: Path) -> str:
    try:
        found = path.stat()
        return _hash_unchanged(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return ""


@functools.lru_cache(maxsize=4096)
def _hash_unchanged(path: Path, mtime_ns: int, size: int) -> str:
    """Hash a file once for each state of it: data files are large and looked at on every edit."""
    del mtime_ns, size
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(jobs: Iterable[JobAnalysis]) -> set[str]:
    files = {CONFIG_NAME}
    for job in jobs:
        files.update(job.reading.files)
        for violation in job.violations:
            places = (violation.place, violation.contract_place)
            files.update(place.file for place in places if place is not None)
            files.update(edit.file for fix in violation.fixes for edit in fix.edits)
    return files


def _texts(sources: Sources, files: set[str]) -> dict[str, str]:
    found = {file: sources.text(file) for file in sorted(files)}
    return {file: text for file, text in found.items() if text is not None}
