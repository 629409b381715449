"""Revert: the undoing of an applied promotion as a commit, beside the user's work."""

from infrarsi.errors import UsageError
from infrarsi_server.operations.applied import (
    CAMPAIGN_TRAILER,
    REVERTS_TRAILER,
    applied_commits,
    standing_commits,
)
from infrarsi_server.operations.apply import ApplyResult, short_name
from infrarsi_server.operations.apply_message import SUBJECT_LIMIT
from infrarsi_server.operations.project import Project
from infrarsi_server.workspace.commits import (
    branch_tip,
    changes_back,
    commit_changes,
    is_ancestor,
    is_checked_out,
)
from infrarsi_server.workspace.root import Repository, need_repository


def revert_promotion(project: Project, campaign: str | None) -> ApplyResult:
    """Commit the undoing of an applied campaign, or of the newest one.

    It goes onto the campaign's own branch; where the change is in HEAD's history already or that
    branch is checked out, onto a new `<branch>-revert`.

    Raises:
        UsageError: nothing is applied, or it is taken back already.
        EditConflict: later changes stand on the same lines.
    """
    repository = need_repository(project.root)
    git = repository.git()
    applied = _find_applied(repository, campaign)
    name = git.text("log", "-1", f"--format=%(trailers:key={CAMPAIGN_TRAILER},valueonly)", applied)
    branch, parent = _revert_target(repository, applied, name)
    subject = f"Revert {git.text('log', '-1', '--format=%s', applied)}"[:SUBJECT_LIMIT]
    message = (
        f"{subject}\n\nThis reverts commit {applied}.\n\n"
        f"{REVERTS_TRAILER}: {applied}\n{CAMPAIGN_TRAILER}: {name}\n"
    )
    changes = changes_back(repository, applied)
    made = commit_changes(repository, branch, parent, changes, message)
    return ApplyResult(
        campaign=name,
        commit=made.commit,
        branch=branch,
        parent=parent,
        reverts=applied,
        subject=subject,
        files=tuple(sorted(changes)),
        merged=made.merged,
    )


def _find_applied(repository: Repository, campaign: str | None) -> str:
    branches = repository.git().text("for-each-ref", "--format=%(refname)", "refs/heads/infrarsi/")
    tips = ["HEAD", *branches.splitlines()]
    for reachable in (["HEAD"], tips):
        if live := standing_commits(repository, reachable, campaign):
            return live[0]
    which = "No promotion" if campaign is None else f"Campaign {campaign}"
    if applied_commits(repository, tips, campaign):
        raise UsageError(f"{which} is in force: it was taken back already.", "Leave it.")
    raise UsageError(f"{which} was applied here.", "See `git branch --list 'infrarsi/*'`.")


def _revert_target(repository: Repository, applied: str, campaign: str) -> tuple[str, str]:
    git = repository.git()
    holding = git.text(
        "for-each-ref", "--format=%(refname:short)", f"--contains={applied}", "refs/heads/infrarsi/"
    ).splitlines()
    own = next((b for b in holding if b.endswith(f"/{short_name(campaign)}")), None)
    is_merged = is_ancestor(repository, applied, "HEAD")
    if own and not is_merged and not is_checked_out(repository, own):
        return own, git.text("rev-parse", own)
    branch = f"{own or f'infrarsi/{short_name(campaign)}'}-revert"
    if branch_tip(repository, branch) is not None:
        raise UsageError(
            f"Campaign {campaign} is taken back on branch {branch} already.",
            f"Take that with: git merge {branch}",
        )
    return branch, git.text("rev-parse", "HEAD" if is_merged or own is None else own)
