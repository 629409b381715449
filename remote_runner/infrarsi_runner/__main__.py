"""`python -m infrarsi_runner serve [--state DIR] [--idle-exit-s N] [--json]`: the daemon.

It stays in the foreground and prints one line of JSON on standard output once it listens; an
error that keeps it from listening is JSON there too with `--json`. Starting it on demand, its
status and stopping it are the server side's.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from infrarsi.errors import InfraRSIError
from infrarsi_runner.serve import serve
from infrarsi_runner.state import state_folder


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="infrarsi-runner", description="The InfraRSI daemon.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("serve", help="serve in the foreground")
    command.add_argument("--state", type=Path, help="folder of the journal and the runs")
    command.add_argument("--idle-exit-s", type=float, help="leave after that long without work")
    command.add_argument("--json", action="store_true", help="write an error as JSON too")
    options = parser.parse_args(arguments)
    try:
        serve(options.state or state_folder(os.environ), idle_exit_s=options.idle_exit_s)
    except InfraRSIError as error:
        _tell(error, as_json=options.json)
        return error.exit_code
    return 0


def _tell(error: InfraRSIError, *, as_json: bool) -> None:
    sys.stderr.write(f"error: {error.what}\n" + (f"       {error.do}\n" if error.do else ""))
    if as_json:
        told = {"error": {"what": error.what, "do": error.do}}
        sys.stdout.write(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
