"""`infrarsi report` and `apply`."""

from pathlib import Path
from typing import Annotated

import typer

from infrarsi.report.markdown import as_markdown
from infrarsi.report.printable import printable
from infrarsi_server.cli import options
from infrarsi_server.cli.output import say, write_json, write_lines
from infrarsi_server.cli.watching import current_state
from infrarsi_server.operations.apply import ApplyResult, apply_promotion
from infrarsi_server.operations.campaigns import find_campaign, measured_texts
from infrarsi_server.operations.project import open_with_usable_locks, write_file
from infrarsi_server.operations.report import report_of
from infrarsi_server.operations.revert import revert_promotion
from infrarsi_server.runner_process import need_runner

Folder = Annotated[Path | None, typer.Option("--dir", help="The workspace.")]


def add_to(app: typer.Typer) -> None:
    """Add the two commands."""
    app.command("report")(report)
    app.command("apply")(apply)


def report(
    folder: Folder = None,
    campaign: options.Campaign = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write there: Markdown, or JSON with --json.")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Show what a run found: every trial, its cost, the promotion with its interval."""
    project = open_with_usable_locks(folder or Path.cwd())
    with need_runner(current_state()) as runner:
        made = report_of(project, find_campaign(project, runner, campaign))
    if output is not None:
        text = made.model_dump_json(indent=2) + "\n" if as_json else as_markdown(made)
        write_file(output, text)
        say(f"Wrote {output}.")
    if as_json:
        write_json(made)
    elif output is None:
        write_lines(printable(as_markdown(made)).splitlines())
    return 0


def apply(
    folder: Folder = None,
    campaign: options.Campaign = None,
    revert: Annotated[
        bool, typer.Option("--revert", help="Take an applied promotion back.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Commit a promotion on a branch of its own; the working tree is not touched."""
    project = open_with_usable_locks(folder or Path.cwd())
    if revert:
        made = revert_promotion(project, campaign)
    else:
        with need_runner(current_state()) as runner:
            view = find_campaign(project, runner, campaign, promoted=campaign is None)
        made = apply_promotion(project, view, measured_texts(project, view))
    if as_json:
        write_json(made)
    else:
        write_lines([f"{made.commit[:12]} on {made.branch}: {made.subject}"])
        say(*made.notes, _next(made))
    return 0


def _next(made: ApplyResult) -> str:
    if made.reverts is not None:
        return f"{made.reverts[:12]} is taken back."
    return f"Take it with: git merge {made.branch}"
