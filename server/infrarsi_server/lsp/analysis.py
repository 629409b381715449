"""From a snapshot to an analysis: what reading and rules say of every locked job of a root.

Runs in a worker thread on frozen data. What it cannot use becomes a sentence, not an exception.
The baseline a change is held against is the committed text the lock was made from.
"""

from collections.abc import Iterable

from infrarsi.contract import LOCK_PATH, Lock, parse_config, read_locks
from infrarsi.errors import InfraRSIError
from infrarsi.reading import read
from infrarsi.reading.sources import Sources
from infrarsi.rules import check_change
from infrarsi_server.session import Analysis, JobAnalysis, Snapshot
from infrarsi_server.workspace.files import FolderSources, OverlaySources
from infrarsi_server.workspace.root import CONFIG_NAME


def analyse_snapshot(snapshot: Snapshot) -> Analysis:
    """Read and check every locked job of the snapshot's root."""
    sources = OverlaySources(FolderSources(snapshot.root), snapshot.overlay())
    try:
        locks = locks_of(sources)
    except InfraRSIError as error:
        return Analysis(snapshot=snapshot, texts=_texts(sources, {CONFIG_NAME}), problem=str(error))
    jobs = tuple(_analyse_job(lock, sources) for lock in locks)
    return Analysis(snapshot=snapshot, jobs=jobs, texts=_texts(sources, _files(jobs)))


def locks_of(sources: Sources) -> tuple[Lock, ...]:
    """The locks of a root, sorted by job; none where nothing is locked yet.

    Raises:
        ConfigError: `infrarsi.toml` or the lock file cannot be used.
    """
    parse_config(sources.text(CONFIG_NAME) or "")
    text = sources.text(LOCK_PATH)
    return () if text is None else tuple(lock for _, lock in sorted(read_locks(text).items()))


def _analyse_job(lock: Lock, sources: Sources) -> JobAnalysis:
    reading = read(sources, lock.contract.launch)
    violations = check_change(lock, reading, sources, None, ())
    return JobAnalysis(lock=lock, reading=reading, violations=violations)


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
