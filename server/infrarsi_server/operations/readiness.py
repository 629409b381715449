"""Whether a workspace can be measured as it is: still what was locked, and torch is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.contract import Lock
from infrarsi.errors import UsageError
from infrarsi.report.findings import Finding
from infrarsi.report.printable import one_line
from infrarsi_server.operations.check import check_locked, present_hashes
from infrarsi_server.operations.project import Project
from infrarsi_server.workspace.interpreter import need_torch, resolve_python
from infrarsi_server.workspace.root import Repository, need_repository

_SHOWN = 3


@dataclass(frozen=True)
class Ready:
    """A workspace that can be handed to the runner, with the lock it keeps."""

    project: Project
    lock: Lock
    python: Path
    repository: Repository


def need_ready(project: Project, name: str | None, environ: Mapping[str, str]) -> Ready:
    """The workspace ready for the named job, or the only one. The runner is not asked.

    Raises:
        UsageError: no repository, no lock, or one that the workspace no longer matches.
        ConfigError: there is no interpreter, or it has no torch.
    """
    lock = project.lock(name)
    repository = need_repository(project.root)
    need_locked_state(project, lock)
    python = resolve_python(project.root, project.job(name).python, environ)
    need_torch(python)
    return Ready(project=project, lock=lock, python=python, repository=repository)


def need_locked_state(project: Project, lock: Lock) -> None:
    """Refuse a workspace that breaks its own lock before anything is run.

    Raises:
        UsageError: a static rule finds an error, or a locked file is another.
    """
    broken = _differences(project, lock)
    if broken:
        more = f" And {len(broken) - _SHOWN} more." if len(broken) > _SHOWN else ""
        raise UsageError(
            f"The workspace is no longer what job `{lock.contract.job}` was locked as: "
            f"{' '.join(broken[:_SHOWN])}{more}",
            "Restore it or run `infrarsi lock`.",
        )


def _differences(project: Project, lock: Lock) -> list[str]:
    errors = [v for v in check_locked(project, lock).violations if v.severity == "error"]
    named = {error.file for error in errors}
    changed = [
        f"{path} {'was edited' if present else 'is gone'}."
        for path, present in sorted(present_hashes(project.root, lock).items())
        if present != lock.locked_files[path] and path not in named
    ]
    return [*map(_told, errors), *changed]


def _told(error: Finding) -> str:
    where = "" if error.file is None else f"{error.file}:{error.line}: "
    return one_line(f"{where}{error.message}", 300)
