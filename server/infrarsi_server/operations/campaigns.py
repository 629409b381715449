"""Campaigns as the user's side sees them: start, follow, find, end."""

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infrarsi.contract import Lock
from infrarsi.errors import InfraRSIError, UsageError
from infrarsi.wire.messages import Budget, CampaignKind, CampaignView, Event, StartCampaign
from infrarsi_server.operations.project import Project
from infrarsi_server.operations.readiness import Ready, need_ready
from infrarsi_server.runner_client import RunnerClient
from infrarsi_server.runner_process import need_runner
from infrarsi_server.workspace.interpreter import editable_roots
from infrarsi_server.workspace.root import find_repository, need_repository
from infrarsi_server.workspace.snapshots import campaign_snapshot, snapshot_workspace

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is asked of a campaign. `id` is chosen by the caller; the same again is harmless."""

    id: str
    kind: CampaignKind
    job: str | None = None
    budget: Budget = field(default_factory=Budget)
    seed: int = 0


class CampaignError(InfraRSIError):
    """A campaign ended without an answer; `exit_code` says whose fault it was."""

    def __init__(self, view: CampaignView) -> None:
        """Take what, do and exit code from the campaign."""
        super().__init__(view.what or f"Campaign {view.id} failed.", view.do)
        self.exit_code = view.exit_code or 3


def prepare_campaign(project: Project, wish: Wish, environ: Mapping[str, str]) -> Ready:
    """Refuse what cannot be measured before a runner is asked for.

    Raises:
        UsageError: a bad id, no repository, no lock, a lock that the workspace no longer matches,
            or no interpreter with torch.
    """
    if not _ID.fullmatch(wish.id):
        raise UsageError(
            f"`{wish.id}` cannot be a campaign's id.",
            "Use up to 64 letters, digits, dashes and underscores.",
        )
    return need_ready(project, wish.job, environ)


def start_campaign(ready: Ready, wish: Wish, runner: RunnerClient) -> CampaignView:
    """Hand the workspace as it is now to the runner and start.

    Raises:
        UsageError: the id was used for something else.
        RunnerError: the runner refuses or is gone.
    """
    root = ready.project.root
    snapshot = snapshot_workspace(root, ready.repository)
    runner.store(snapshot.bundle())
    view = runner.start(
        StartCampaign(
            id=wish.id,
            kind=wish.kind,
            lock=ready.lock,
            source=snapshot.commit,
            python=str(ready.python),
            editable_roots=editable_roots(ready.python, root),
            workspace=str(root),
            budget=wish.budget,
            seed=wish.seed,
        )
    )
    snapshot.keep_for(wish.id)
    return view


def follow_campaign(
    runner: RunnerClient, campaign: str, state: Path, after: int = 0
) -> Generator[Event]:
    """The campaign's events to its end; the daemon is started again where it is gone."""
    yield from runner.events(campaign, after, revive=lambda: need_runner(state).close())


def ended_well(view: CampaignView) -> CampaignView:
    """The campaign itself if it finished.

    Raises:
        CampaignError: it failed, or was stopped before its answer.
    """
    if view.state == "failed":
        raise CampaignError(view)
    if view.state == "stopped":
        stopped = CampaignError(view)
        stopped.what = view.what or f"Campaign {view.id} was stopped before its answer."
        stopped.exit_code = 1
        raise stopped
    return view


def find_campaign(
    project: Project, runner: RunnerClient, campaign: str | None, *, promoted: bool = False
) -> CampaignView:
    """The named campaign, or this workspace's newest finished run.

    Args:
        project: the workspace.
        runner: the daemon that holds the campaigns.
        campaign: an id, or None for the newest.
        promoted: ask for one that promoted something.

    Raises:
        UsageError: there is none.
    """
    if campaign is not None:
        view = runner.campaign(campaign)
        if view.run is None:
            raise no_report(view)
        return view
    digests = {lock.digest for lock in project.locks.values()}
    for view in runner.campaigns():
        has_result = view.run is not None and (view.run.promoted is not None or not promoted)
        if has_result and (view.contract_digest in digests or _is_remembered(project, view.id)):
            return view
    what = "has promoted anything" if promoted else "has finished"
    raise UsageError(f"No run of this workspace {what}.", "Run: infrarsi run")


def no_report(view: CampaignView) -> UsageError:
    """Why a campaign without a run's result has no report, and what to do."""
    if view.state in ("failed", "stopped"):
        do = f"Start another with: infrarsi {view.kind}"
    else:
        do = f"See it with: infrarsi {view.kind} --rejoin {view.id}"
    if view.kind == "run":
        return UsageError(f"Campaign {view.id} is {view.state} and has no report.", do)
    return UsageError(f"Campaign {view.id} is a {view.kind}; only a run has a report.", do)


def measured_texts(project: Project, view: CampaignView) -> dict[str, str]:
    """The source a campaign measured, for the files its promotion changes.

    Falls back on the lock's baseline commit where this clone does not remember the campaign.
    """
    repository = find_repository(project.root)
    if view.run is None or view.run.promoted is None or repository is None:
        return {}
    snapshot = campaign_snapshot(repository, view.id)
    texts: dict[str, str] = {}
    for file in {edit.file for edit in view.run.promoted.edits}:
        text = snapshot.text(file) if snapshot else _baseline_text(project, view.run.lock, file)
        if text is not None:
            texts[file] = text
    return texts


def _baseline_text(project: Project, lock: Lock, file: str) -> str | None:
    repository = need_repository(project.root)
    raw = repository.git().show(lock.baseline_commit, repository.path(file))
    return None if raw is None else raw.decode(errors="replace")


def _is_remembered(project: Project, campaign: str) -> bool:
    repository = find_repository(project.root)
    return repository is not None and campaign_snapshot(repository, campaign) is not None
