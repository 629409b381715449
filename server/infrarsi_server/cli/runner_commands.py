"""`infrarsi runner serve`, `status` and `stop`."""

import os
from collections.abc import Iterator

import typer

from infrarsi_server.cli import options
from infrarsi_server.cli.output import say, write_json, write_lines
from infrarsi_server.cli.watching import current_state
from infrarsi_server.operations.runner import RunnerStatus, runner_status, stop_runner
from infrarsi_server.runner_process import serve_command, serve_environment

app = typer.Typer(help="The daemon that runs campaigns; started on demand.", add_completion=False)


@app.command("serve")
def serve(as_json: options.Json = False) -> int:
    """Run the daemon in the foreground; its one line on standard output is JSON anyway."""
    argv = [*serve_command(), *(["--json"] if as_json else [])]
    os.execve(argv[0], argv, serve_environment(current_state()))  # noqa: S606 (argv is ours)


@app.command("status")
def status(as_json: options.Json = False) -> int:
    """Say whether the daemon runs and what it works on; none is started."""
    found = runner_status(current_state())
    if as_json:
        write_json(found)
    else:
        write_lines(_lines(found))
    return 0


@app.command("stop")
def stop(as_json: options.Json = False) -> int:
    """End the daemon; a campaign under way is resumed by the next one."""
    found = stop_runner(current_state())
    if as_json:
        write_json(found)
    elif found.pid is None:
        say("No runner was running.")
    else:
        say(f"Runner {found.pid} is asked to end.")
    return 0


def _lines(found: RunnerStatus) -> Iterator[str]:
    if not found.running:
        yield f"not running ({found.state_folder})"
        return
    yield f"running: pid {found.pid}, version {found.version}, {found.state_folder}"
    for campaign in found.campaigns:
        yield f"  {campaign.id}  {campaign.kind}  {campaign.state}"
