"""`infrarsi init`, `lock` and `check`."""

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from infrarsi.contract import Fact
from infrarsi.errors import UsageError
from infrarsi.knobs import Knob
from infrarsi.report.findings import Finding, as_github, as_text
from infrarsi.report.sarif import as_sarif
from infrarsi_server.cli import options
from infrarsi_server.cli.output import is_interactive, say, write_json, write_lines
from infrarsi_server.installed import installed_version
from infrarsi_server.operations.check import CheckResult, check_sides, check_workspace
from infrarsi_server.operations.contracting import open_sides
from infrarsi_server.operations.init import InitResult, UnderstoodJob, propose_init
from infrarsi_server.operations.lock import LockedJob, LockResult, lock_jobs
from infrarsi_server.operations.project import open_project, open_with_usable_locks
from infrarsi_server.workspace.root import find_repository, find_root


class Format(StrEnum):
    """How `check` prints."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


def add_to(app: typer.Typer) -> None:
    """Add the three commands."""
    app.command("init")(init)
    app.command("lock")(lock)
    app.command("check")(check)


def init(
    folder: options.Folder = None,
    launch: options.Launch = None,
    python: Annotated[
        str | None, typer.Option("--python", help="The job's own interpreter.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    as_json: options.Json = False,
) -> int:
    """Read the training job and write infrarsi.toml."""
    proposal = propose_init(folder, launch, python, os.environ, Path.cwd())
    if proposal.text is not None and not yes and not as_json and is_interactive():
        write_lines(_understood(proposal.result))
        if not typer.confirm(f"Write {proposal.result.config}?", default=True, err=True):
            say("Nothing was written.")
            return 0
        result = proposal.write()
    else:
        result = proposal.write()
        if as_json:
            write_json(result)
            return 0
        write_lines(_understood(result))
    path = Path(result.root, result.config)
    did = f"Wrote {path}." if result.written else f"{path} is up to date."
    say(did, "Edit it where a guess is wrong, then run: infrarsi lock")
    return 0


def lock(
    folder: options.Folder = None, job: options.Job = None, as_json: options.Json = False
) -> int:
    """Freeze the contract into .infrarsi/contract.lock.json."""
    result = lock_jobs(open_with_usable_locks(folder or Path.cwd()), job)
    if as_json:
        write_json(result)
        return 0
    write_lines(line for locked in result.jobs for line in _locked(locked))
    say(*_lock_notes(result))
    return 0


def check(
    folder: options.Folder = None,
    before: options.Before = None,
    after: options.After = None,
    launch: options.Launch = None,
    job: options.Job = None,
    form: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TEXT,
    as_json: options.Json = False,
) -> int:
    """Hold the source against the contract; nothing is run."""
    result = _check(folder, before, after, launch, job)
    in_repository = _from_top(result.violations, after or folder or Path.cwd())
    match Format.JSON if as_json else form:
        case Format.JSON:
            write_json(result)
        case Format.SARIF:
            write_json(as_sarif(in_repository, result.problems, installed_version()))
        case Format.GITHUB:
            write_lines(as_github(in_repository).splitlines())
        case Format.TEXT:
            write_lines(as_text(result.violations).splitlines())
            say(*result.problems, _verdict(result))
    return 1 if result.n_errors else 0


def _check(
    folder: Path | None,
    before: Path | None,
    after: Path | None,
    launch: str | None,
    job: str | None,
) -> CheckResult:
    if before is None and after is None:
        return check_workspace(open_project(folder or Path.cwd()), job)
    if before is None or after is None or folder is not None:
        raise UsageError(
            "--before and --after belong together and stand for the folder.",
            "Give both, and no folder.",
        )
    return check_sides(open_sides(before, after, launch, job))


def _from_top(found: tuple[Finding, ...], folder: Path) -> tuple[Finding, ...]:
    """The findings with their files named from the repository's top, as a CI service knows them."""
    repository = find_repository(find_root(folder))
    prefix = "" if repository is None else repository.prefix
    return tuple(
        f.model_copy(update={"file": f"{prefix}{f.file}"}) if prefix and f.file else f
        for f in found
    )


def _verdict(result: CheckResult) -> str:
    n_other = len(result.violations) - result.n_errors
    if not result.violations:
        return f"{result.job}: the contract is kept."
    return f"{result.job}: {result.n_errors} errors, {n_other} warnings."


def _understood(result: InitResult) -> Iterator[str]:
    for job in result.jobs:
        yield f"{job.job}: {job.launch}"
        yield f"  runs with {job.python}"
        yield from (f"  {line}" for line in _facts(job))
        yield from (f"  knob {_knob(knob)}" for knob in job.knobs)
        yield from (f"  could not read: {problem}" for problem in job.problems)
    yield from result.notes


def _facts(job: UnderstoodJob) -> Iterator[str]:
    known = [fact for fact in job.facts if fact.unknown is None]
    width = max((len(fact.name) for fact in job.facts), default=0)
    for fact in known:
        place = f"  {fact.place}" if fact.place else ""
        yield f"{fact.name:<{width}} = {fact.value}{place}"
    for fact in job.facts:
        if fact.unknown is not None:
            guess = "" if fact.guess is None else f"; perhaps {fact.guess}"
            yield f"{fact.name:<{width}} ? {fact.unknown}{guess}"


def _knob(knob: Knob) -> str:
    choices = ", ".join(str(choice) for choice in knob.choices)
    places = ", ".join(str(b.place or b.name) for b in knob.bindings)
    return f"{knob.name} = {knob.default} of {choices}  {places}"


def _locked(locked: LockedJob) -> Iterator[str]:
    did = "locked" if locked.changed else "unchanged"
    yield (
        f"{locked.job}: {did}, {locked.digest[:12]}, {locked.n_locked_files} locked files, "
        f"baseline {locked.baseline_commit[:12]}"
    )
    yield from (f"  not known and so not held: {_unknown(fact)}" for fact in locked.unknown)


def _unknown(fact: Fact) -> str:
    return f"{fact.name} ({fact.unknown})"


def _lock_notes(result: LockResult) -> Iterator[str]:
    if result.uncommitted:
        listed = ", ".join(result.uncommitted[:5])
        more = len(result.uncommitted) - 5
        rest = f" and {more} more" if more > 0 else ""
        yield f"Not committed: {listed}{rest}. Runs use the files as they are now."
    yield f"Wrote {result.lock}." if result.written else f"{result.lock} is up to date."
