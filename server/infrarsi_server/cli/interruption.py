"""Ctrl-C during a campaign: stop it, or leave it running."""

from collections.abc import Callable

import typer

from infrarsi.errors import InfraRSIError
from infrarsi_server.cli.output import is_interactive
from infrarsi_server.runner_client import RunnerClient


class InterruptionError(InfraRSIError):
    """The person left before the answer."""

    exit_code = 3


def interrupt_campaign(
    runner: RunnerClient, campaign: str, command: str, ask: Callable[[], bool] | None = None
) -> InterruptionError:
    """Ask where a person can answer, act, and say how to go on.

    Without a terminal the campaign is left running. A second Ctrl-C leaves it running too.

    Args:
        runner: the daemon.
        campaign: its id.
        command: `doctor`, `run` or `verify`.
        ask: whether to stop it; by default the terminal is asked.
    """
    if is_interactive() if ask is None else True:
        try:
            stops = (ask or _ask)()
        except (KeyboardInterrupt, EOFError, typer.Abort):
            stops = False
        if stops:
            runner.stop(campaign)
            return InterruptionError(
                f"Campaign {campaign} is stopped and has no report.",
                f"Start again with: infrarsi {command}",
            )
    return InterruptionError(
        f"Campaign {campaign} goes on without you.",
        f"Rejoin it with `infrarsi {command} --rejoin {campaign}`; "
        f"stop it with `infrarsi run --stop {campaign}`.",
    )


def _ask() -> bool:
    answer = typer.prompt(
        "Stop the campaign, or leave it running? [stop/leave]", default="leave", err=True
    )
    return answer.strip().lower().startswith("s")
