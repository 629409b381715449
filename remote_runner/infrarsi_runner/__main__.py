"""`python -m infrarsi_runner serve [--state DIR] [--idle-exit-s N]`: the daemon in the foreground.

Prints one line of JSON on standard output once it listens. Starting it on demand, its status and
stopping it are the server side's.
"""

import argparse
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
    options = parser.parse_args(arguments)
    try:
        serve(options.state or state_folder(os.environ), idle_exit_s=options.idle_exit_s)
    except InfraRSIError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
