"""A full disk: recognised wherever it shows, and one sentence for it."""

import errno
import sqlite3
from pathlib import Path

from infrarsi.errors import RunnerError

_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_SQLITE_TEXTS = ("full", "disk i/o error")


class DiskFull(RunnerError):
    """The runner's disk has no room; what was written before is whole."""

    def __init__(self, path: Path) -> None:
        """Name the place."""
        super().__init__(
            f"The disk that holds {path} is full.",
            "Free some space there and start the campaign again: what was finished is kept.",
        )


def is_disk_full(error: BaseException) -> bool:
    """Whether this error, or one that it was raised from, says so."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, DiskFull):
            return True
        if isinstance(link, OSError) and link.errno in _ERRNOS:
            return True
        if isinstance(link, sqlite3.OperationalError):
            return any(text in str(link).lower() for text in _SQLITE_TEXTS)
        link = link.__cause__ or link.__context__
    return False
