"""The entry point: every error becomes two sentences and an exit code.

0 good    1 violation, rejection or inconclusive    2 usage or configuration
3 runner, machine, or left by Ctrl-C
"""

import sys
import traceback
from collections.abc import Callable, Sequence

import typer
from typer.exceptions import TyperException

from infrarsi.errors import InfraRSIError, RunnerError, UsageError
from infrarsi_server.cli.app import app
from infrarsi_server.cli.interruption import InterruptionError
from infrarsi_server.cli.output import say, write_error


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.exit(run(arguments))


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
    except Exception:  # noqa: BLE001 (one request; a fault of ours is no violation of theirs)
        say(traceback.format_exc())
        error = RunnerError("This is a fault of InfraRSI itself.", "Please report the lines above.")
    write_error(error, as_json="--json" in arguments)
    return error.exit_code


def _message(raised: TyperException) -> str:
    format_message: Callable[[], str] | None = getattr(raised, "format_message", None)
    return str(raised) if format_message is None else format_message()


if __name__ == "__main__":
    main()
