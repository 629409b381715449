"""The line to the runner: one JSON object a line over a unix socket.

Sending blocks for as long as the runner takes to read; receiving never waits.
"""

import json
import socket

CONNECT_SECONDS = 10.0


class RunnerGoneError(Exception):
    """The runner closed the line or cannot be reached."""


class Control:
    """A connection of one rank."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(CONNECT_SECONDS)
        try:
            self._socket.connect(path)
        except OSError as error:
            raise RunnerGoneError(str(error)) from error
        self._socket.settimeout(None)
        self._pending = b""

    def send(self, **line):
        """Send one line. Raises RunnerGoneError."""
        try:
            self._socket.sendall(json.dumps(line).encode("utf-8") + b"\n")
        except OSError as error:
            raise RunnerGoneError(str(error)) from error

    def commands(self):
        """Whole lines that have arrived, without waiting. Raises RunnerGoneError."""
        try:
            while True:
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
                if not data:
                    raise RunnerGoneError("end of stream")
                self._pending += data
        except BlockingIOError:
            pass
        except OSError as error:
            raise RunnerGoneError(str(error)) from error
        *lines, self._pending = self._pending.split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]
