"""What reaches the terminal: JSON alone on standard output, words for people, errors in two."""

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console

from infrarsi.errors import InfraRSIError, RunnerError
from infrarsi.frozen import Frozen
from infrarsi.report.printable import printable
from infrarsi_server.cli.answers import ErrorAnswer, Told


def put(text: str) -> None:
    """The text on standard output. A reader that has left is no error.

    Raises:
        RunnerError: the machine does not take it; what follows is discarded.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            what = f"The answer cannot be written: {error.strerror}."
            raise RunnerError(what, "Make room where it goes.") from error


def write_json(content: Frozen | dict[str, Any]) -> None:
    """One JSON document on standard output."""
    data = content.model_dump(mode="json") if isinstance(content, Frozen) else content
    put(json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False) + "\n")


def write_lines(lines: Iterable[str]) -> None:
    """The answer for a person, on standard output, without control characters."""
    put("".join(f"{printable(line)}\n" for line in lines))


def say(*sentences: str) -> None:
    """What goes on, on standard error."""
    sys.stderr.write("".join(f"{printable(sentence)}\n" for sentence in sentences))
    sys.stderr.flush()


def write_error(error: InfraRSIError, *, as_json: bool) -> None:
    """What was wrong and what to do, and the same as JSON where that was asked for."""
    say(f"error: {error.what}", *([f"       {error.do}"] if error.do else []))
    if as_json:
        write_json(ErrorAnswer(error=Told(what=error.what, do=error.do)))


def stderr_console() -> Console:
    """Where progress is drawn."""
    return Console(stderr=True, highlight=False)


def is_interactive() -> bool:
    """Whether a person is at both ends."""
    return sys.stdin.isatty() and sys.stderr.isatty()
