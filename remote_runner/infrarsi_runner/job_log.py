"""A job's output: always drained, so that it never blocks; kept up to a limit, made printable."""

import re
import threading
from collections import deque
from pathlib import Path
from typing import IO

_FILE_LIMIT_BYTES = 8 << 20
_TAIL_BYTES = 64 << 10
_SHOWN_CHARS = 4000
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class JobLog:
    """Copies a pipe on a thread of its own: the first bytes to a file, the last to memory."""

    def __init__(self, pipe: IO[bytes], path: Path) -> None:
        """Start draining at once."""
        self._pipe = pipe
        self._path = path
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._thread = threading.Thread(target=self._drain, name="job log", daemon=True)
        self._thread.start()

    def finish(self, within_s: float = 5.0) -> str:
        """Wait for the end of the output and answer its tail, safe to show."""
        self._thread.join(within_s)
        return printable(b"".join(tuple(self._tail)).decode("utf-8", "replace"))[-_SHOWN_CHARS:]

    def _drain(self) -> None:
        written = 0
        with self._pipe, self._path.open("wb", buffering=0) as file:
            while data := self._pipe.read1(65536):  # type: ignore[attr-defined]
                if written < _FILE_LIMIT_BYTES:
                    written += self._copy(file, data[: _FILE_LIMIT_BYTES - written])
                self._tail.append(data)
                self._tail_bytes += len(data)
                while self._tail_bytes - len(self._tail[0]) >= _TAIL_BYTES:
                    self._tail_bytes -= len(self._tail.popleft())

    def _copy(self, file: IO[bytes], data: bytes) -> int:
        """Write; a full disk ends the copying, never the draining."""
        try:
            file.write(data)
        except OSError:
            return _FILE_LIMIT_BYTES
        return len(data)


def printable(text: str) -> str:
    """Text without escape sequences, control characters and direction marks."""
    unified = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", unified)
