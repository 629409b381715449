"""A campaign watched from the terminal, from its start to its end."""

import os
import secrets
import time
from pathlib import Path

from infrarsi.wire.messages import CampaignView
from infrarsi_server.cli.interruption import interrupt_campaign
from infrarsi_server.cli.live import progress_on
from infrarsi_server.cli.output import say, stderr_console
from infrarsi_server.operations.campaigns import (
    Wish,
    ended_well,
    follow_campaign,
    prepare_campaign,
    start_campaign,
)
from infrarsi_server.operations.project import Project
from infrarsi_server.runner_client import RunnerClient
from infrarsi_server.runner_process import need_runner, state_folder


def new_campaign_id() -> str:
    """A new id: the date, so that lists read well, and a random end."""
    return f"{time.strftime('%Y%m%d-%H%M', time.gmtime())}-{secrets.token_hex(3)}"


def current_state() -> Path:
    """The runner's state folder as the environment names it."""
    return state_folder(os.environ)


def run_campaign(project: Project, wish: Wish) -> CampaignView:
    """Start it and watch it to its end.

    Raises:
        UsageError: the workspace is not ready.
        RunnerError: the runner is not.
        InterruptionError: the person left.
        CampaignError: it failed or was stopped.
    """
    ready = prepare_campaign(project, wish, os.environ)
    state = current_state()
    with need_runner(state) as runner:
        view = start_campaign(ready, wish, runner)
        say(f"Campaign {view.id}")
        return watch_campaign(runner, view.id, wish.kind, state)


def watch_campaign(runner: RunnerClient, campaign: str, command: str, state: Path) -> CampaignView:
    """Show a campaign's events to its end; Ctrl-C asks whether to stop it."""
    try:
        with progress_on(stderr_console()) as progress:
            for event in follow_campaign(runner, campaign, state):
                progress.show(event)
    except KeyboardInterrupt:
        raise interrupt_campaign(runner, campaign, command) from None
    return ended_well(runner.campaign(campaign))
