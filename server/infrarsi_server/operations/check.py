"""Check: the source against its contract, static; nothing is run."""

import os
from collections.abc import Mapping
from pathlib import Path

from infrarsi.contract import Lock
from infrarsi.errors import UsageError
from infrarsi.frozen import Frozen
from infrarsi.launch import Launch
from infrarsi.reading import Program, Sources, follow
from infrarsi.report.findings import Finding, findings, problem_text
from infrarsi.report.printable import one_line
from infrarsi.rules import check_change
from infrarsi_server.operations.contracting import Sides
from infrarsi_server.operations.lock import hash_file
from infrarsi_server.operations.project import Project
from infrarsi_server.workspace.files import CommitSources
from infrarsi_server.workspace.root import find_repository


class CheckResult(Frozen):
    """What the static rules say. `problems` is what could not be read, one line each.

    `job` names the job; where several are checked their names are joined by commas.
    """

    job: str
    violations: tuple[Finding, ...]
    problems: tuple[str, ...]

    @property
    def n_errors(self) -> int:
        """How many violations are errors."""
        return sum(found.severity == "error" for found in self.violations)


def check_workspace(project: Project, name: str | None) -> CheckResult:
    """Hold every locked job of a workspace, or the named one, against its lock.

    Raises:
        UsageError: nothing is locked, or a launch line's script is not there.
    """
    if name is None and project.locks:
        locks = list(project.locks.values())
    else:
        job = project.job(name).name
        if job not in project.locks:
            raise UsageError(f"Job `{job}` is not locked.", "Run: infrarsi lock")
        locks = [project.locks[job]]
    return _joined([check_locked(project, lock) for lock in locks])


def check_sides(sides: Sides) -> CheckResult:
    """Hold one folder against the contract of another."""
    before = _follow(sides.before, sides.lock.contract.launch)
    result = _check(sides.lock, sides.after.root, sides.after, sides.after_launch, before)
    refused = () if sides.refused is None else findings([sides.refused])
    unclear = () if sides.unclear is None else (one_line(sides.unclear, 500),)
    return result.model_copy(
        update={
            "violations": (*refused, *result.violations),
            "problems": (*unclear, *result.problems),
        }
    )


def check_locked(project: Project, lock: Lock) -> CheckResult:
    """Hold one locked job of a workspace against its lock."""
    before = None
    repository = find_repository(project.root)
    if repository is not None:
        baseline = CommitSources(repository, lock.baseline_commit)
        before = _follow(baseline, lock.contract.launch) if baseline.paths() else None
    return _check(lock, project.root, project.sources, project.launch(lock), before)


def _check(
    lock: Lock, root: Path, sources: Sources, launch: Launch, before: Program | None
) -> CheckResult:
    if sources.text(launch.script) is None:
        raise UsageError(
            f"The script {launch.script} of job `{lock.contract.job}` is not in {root}.",
            "Put it back, or mend `launch` in infrarsi.toml.",
        )
    now = _follow(sources, launch)
    violations = check_change(lock, now, before, present_hashes(root, lock))
    return CheckResult(
        job=lock.contract.job,
        violations=findings(violations),
        problems=tuple(problem_text(problem) for problem in now.reading.problems),
    )


def present_hashes(root: Path, lock: Lock) -> Mapping[str, str]:
    """SHA-256 of the locked files as they are now, "" for one that is gone."""
    return {
        path: hash_file(root / path) if (root / path).is_file() else ""
        for path in lock.locked_files
    }


def _follow(sources: Sources, launch: Launch) -> Program:
    return follow(sources, launch, n_cpus=os.cpu_count() or 1)


def _joined(results: list[CheckResult]) -> CheckResult:
    return CheckResult(
        job=",".join(result.job for result in results),
        violations=tuple(dict.fromkeys(v for result in results for v in result.violations)),
        problems=tuple(dict.fromkeys(p for result in results for p in result.problems)),
    )
