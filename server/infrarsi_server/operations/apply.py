"""Apply: a promotion as one commit on a branch of its own, with its evidence.

The working tree is never touched, and a branch that is checked out is never moved.
"""

from collections.abc import Iterable

import tomlkit

from infrarsi.edits import Edit, apply_edits
from infrarsi.errors import EditConflict, UsageError
from infrarsi.frozen import Frozen
from infrarsi.launch import Launch, render_launch
from infrarsi.wire.messages import CampaignView
from infrarsi.wire.results import Promotion, RunResult
from infrarsi_server.operations.applied import standing_commits
from infrarsi_server.operations.apply_message import commit_message, subject_line
from infrarsi_server.operations.project import Project, read_file
from infrarsi_server.workspace.commits import Change, Committed, branch_tip, commit_changes
from infrarsi_server.workspace.root import CONFIG_NAME, Repository, need_repository


class ApplyResult(Frozen):
    """A commit made. `merged` are files whose text had moved on since it was measured."""

    campaign: str
    commit: str
    branch: str
    parent: str
    reverts: str | None = None
    subject: str
    files: tuple[str, ...]
    merged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def apply_promotion(project: Project, view: CampaignView, texts: dict[str, str]) -> ApplyResult:
    """Commit the campaign's promotion on `infrarsi/<job>/<campaign>`.

    Args:
        project: the workspace.
        view: a finished campaign.
        texts: the measured source of the files to change.

    Raises:
        UsageError: nothing was promoted, or it is applied already.
        EditConflict: the files moved on and do not merge.
    """
    repository = need_repository(project.root)
    result, promotion = _promoted(view)
    branch = f"infrarsi/{result.lock.contract.job}/{short_name(view.id)}"
    parent = repository.git().text("rev-parse", "HEAD")
    _refuse_applied(repository, view.id, branch)
    changes = _text_changes(repository, promotion.edits, texts)
    launch_changed = promotion.launch != result.lock.contract.launch
    if launch_changed:
        changes |= _config_change(project, repository, result, promotion.launch)
    message = commit_message(result, promotion)
    made = commit_changes(repository, branch, parent, changes, message)
    return ApplyResult(
        campaign=view.id,
        commit=made.commit,
        branch=branch,
        parent=parent,
        subject=subject_line(result, promotion),
        files=tuple(sorted(changes)),
        merged=made.merged,
        notes=_notes(repository, made, parent, launch_changed),
    )


def short_name(campaign: str) -> str:
    """The campaign's id as the last part of a branch name."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in campaign)[:40].strip("-")


def _promoted(view: CampaignView) -> tuple[RunResult, Promotion]:
    if view.run is None or view.run.promoted is None:
        raise UsageError(
            f"Campaign {view.id} promoted nothing.", "See `infrarsi report` for what it found."
        )
    return view.run, view.run.promoted


def _refuse_applied(repository: Repository, campaign: str, branch: str) -> None:
    if branch_tip(repository, branch) is not None:
        if standing_commits(repository, [branch], campaign):
            raise UsageError(
                f"Campaign {campaign} is already applied on branch {branch}.",
                f"Take it with `git merge {branch}`, or undo it with `infrarsi apply --revert`.",
            )
        raise UsageError(
            f"Branch {branch} is there, and the change is not in force on it.",
            f"To apply it again, remove the branch: git branch -D {branch}",
        )
    if standing_commits(repository, ["HEAD"], campaign):
        raise UsageError(
            f"Campaign {campaign} is already in the history of HEAD.",
            "Take it back with `infrarsi apply --revert` if you do not want it.",
        )


def _text_changes(
    repository: Repository, edits: Iterable[Edit], texts: dict[str, str]
) -> dict[str, Change]:
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    changes: dict[str, Change] = {}
    for file, of_file in by_file.items():
        before = texts.get(file)
        if before is None:
            raise EditConflict(
                f"The measured text of {file} is not in this repository.",
                "Apply it in the clone the campaign was started from.",
            )
        changes[repository.path(file)] = Change(before, apply_edits(before, of_file))
    return changes


def _config_change(
    project: Project, repository: Repository, result: RunResult, launch: Launch
) -> dict[str, Change]:
    path, job = repository.path(CONFIG_NAME), result.lock.contract.job
    raw = repository.git().show("HEAD", path)
    committed = None if raw is None else raw.decode()
    for text in (committed, read_file(project.root / CONFIG_NAME)):
        if text is not None and (changed := _set_launch(text, job, launch)):
            return {path: Change(committed, changed)}
    raise UsageError(
        f"{CONFIG_NAME} has no job `{job}` to change the launch line of.", "Run: infrarsi init"
    )


def _set_launch(text: str, job: str, launch: Launch) -> str | None:
    document = tomlkit.parse(text)
    jobs = document.get("job", {})
    if job not in jobs:
        return None
    jobs[job]["launch"] = render_launch(launch)
    return tomlkit.dumps(document)


def _notes(
    repository: Repository, made: Committed, parent: str, launch_changed: bool
) -> tuple[str, ...]:
    notes: list[str] = []
    if made.merged:
        files = ", ".join(made.merged)
        notes.append(f"{files} differed from what was measured and merged without conflict.")
    config = repository.path(CONFIG_NAME)
    if launch_changed:
        notes.append(f"The launch line changes too: see {CONFIG_NAME} in the commit.")
        if repository.git().show(parent, config) is None:
            notes.append(f"{CONFIG_NAME} is not committed here; commit it before you merge.")
    return tuple(notes)
