"""Untrusted text made fit for a terminal, a log or a Markdown page."""

import re

_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]"
)


def printable(text: str) -> str:
    """The text without control characters and terminal sequences; lines and tabs stay."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 200) -> str:
    """The text on one line, cut at `limit` characters."""
    joined = " ".join(printable(text).split())
    return joined if len(joined) <= limit else f"{joined[: limit - 1]}…"


def fenced(text: str, language: str = "") -> str:
    """A Markdown code block no content can end early."""
    clean = printable(text).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{clean}\n{fence}"


def cell(text: str) -> str:
    """The text as one cell of a Markdown table."""
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
