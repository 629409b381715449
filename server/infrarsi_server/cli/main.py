"""The entry point: every error becomes two sentences and an exit code.

0 good    1 violation, rejection or inconclusive    2 usage or configuration
3 runner, machine, or left by Ctrl-C
"""

import os
import sys
from collections.abc import Callable, Sequence

import typer
from typer.exceptions import TyperException

from infrarsi.errors import InfraRSIError, UsageError
from infrarsi_server.cli.app import app
from infrarsi_server.cli.interruption import InterruptionError
from infrarsi_server.cli.output import write_error


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    code = run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command; its exit code."""
    try:
        return int(app(list(arguments), prog_name="infrarsi", standalone_mode=False) or 0)
    except InfraRSIError as raised:
        error = raised
    except TyperException as raised:
        error = UsageError(f"{_message(raised).rstrip('.')}.", "See infrarsi --help.")
    except (KeyboardInterrupt, typer.Abort):
        error = InterruptionError("Left by Ctrl-C.", "Nothing was left half-done.")
    except BrokenPipeError:
        return 0
    write_error(error, as_json="--json" in arguments)
    return error.exit_code


def _message(raised: TyperException) -> str:
    format_message: Callable[[], str] | None = getattr(raised, "format_message", None)
    return str(raised) if format_message is None else format_message()


if __name__ == "__main__":
    main()
