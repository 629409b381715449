"""ProbeFailure records: why a rank ended before its window."""

import traceback
from pathlib import Path

from infrarsi_probe import memory

LONGEST = 2000


def failure(kind, message, file=None, line=None, requested=None):
    """A ProbeFailure as a dictionary."""
    return {
        "kind": kind,
        "message": message[:LONGEST],
        "requested_bytes": requested,
        "file": file,
        "line": line,
    }


def own_file(path, root):
    """Whether `path` is the user's own source under `root`, not something installed there."""
    if not path or path.startswith("<") or "site-packages" in path:
        return False
    try:
        relative = Path(path).resolve().relative_to(root)
    except (ValueError, OSError):
        return False
    return not any(part in (".venv", "venv") for part in relative.parts)


def from_exception(error, root):
    """The failure an uncaught exception tells of, with the innermost line of the user's."""
    message = f"{type(error).__name__}: {error}"
    place = None
    for frame in traceback.extract_tb(error.__traceback__):
        if own_file(frame.filename, root):
            place = (str(Path(frame.filename).resolve()), frame.lineno)
    file, line = place if place else (None, None)
    if memory.is_out_of_memory(error):
        return failure("oom", message, file, line, memory.requested_bytes(str(error)))
    return failure("exception", message, file, line)
