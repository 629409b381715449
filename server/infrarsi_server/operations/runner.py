"""The daemon from outside: how it stands, and its end."""

from pathlib import Path

from infrarsi.errors import RunnerError
from infrarsi.frozen import Frozen
from infrarsi.wire.messages import CampaignKind, CampaignState
from infrarsi_server.runner_process import end_noted_runner, find_runner


class ListedCampaign(Frozen):
    """A campaign as `runner status` lists it. `created_s` is Unix time."""

    id: str
    kind: CampaignKind
    state: CampaignState
    created_s: float


class RunnerStatus(Frozen):
    """Whether a daemon answers, and what it works on."""

    running: bool
    state_folder: str
    pid: int | None = None
    version: str | None = None
    protocol: int | None = None
    campaign: str | None = None
    campaigns: tuple[ListedCampaign, ...] = ()


def runner_status(state: Path) -> RunnerStatus:
    """How the daemon of that state folder stands; none is started."""
    client = find_runner(state)
    if client is None:
        return RunnerStatus(running=False, state_folder=str(state))
    with client:
        health = client.health()
        listed = client.campaigns()
    return RunnerStatus(
        running=True,
        state_folder=str(state),
        pid=health.pid,
        version=health.version,
        protocol=health.protocol,
        campaign=health.running,
        campaigns=tuple(
            ListedCampaign(id=c.id, kind=c.kind, state=c.state, created_s=c.created_s)
            for c in listed
        ),
    )


def stop_runner(state: Path) -> RunnerStatus:
    """End the daemon if one runs, of any version. A campaign is resumed by the next one.

    Raises:
        RunnerError: something answers and cannot be ended.
    """
    try:
        before = runner_status(state)
    except RunnerError:
        before = RunnerStatus(running=False, state_folder=str(state))
    pid = end_noted_runner(state)
    return before.model_copy(update={"running": False, "pid": before.pid or pid})
