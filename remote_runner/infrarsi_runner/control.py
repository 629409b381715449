"""The runner's end of the control socket: who connects, and when each step's line arrives.

The time of a step is taken here, from the outside clock, the moment its line can be read. Only
processes of the job's own tree may connect, and a rank can be claimed once.
"""

import contextlib
import os
import selectors
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from infrarsi.run import OutsideStep
from infrarsi.wire.probe import Bye, Hello, ProbeLine, RunnerLine, Stepped

_LINE: TypeAdapter[ProbeLine] = TypeAdapter(ProbeLine)
_LINE_LIMIT_BYTES = 4096


@dataclass
class Rank:
    """One rank's connection. `pid` is of the runner's own process namespace."""

    socket: socket.socket
    pid: int
    number: int | None = None
    world_size: int = 1
    last_index: int | None = None
    bye: str | None = None
    pending: bytes = b""


class ControlSocket:
    """Listens for the ranks of one job."""

    def __init__(
        self, path: Path | None, clock: Callable[[], float], belongs: Callable[[int], bool]
    ) -> None:
        """Bind `path` (at most 107 bytes), or nothing for a run without control.

        `belongs` says whether a process id is of this job.
        """
        self._clock = clock
        self._belongs = belongs
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if path is not None:
            self._server.bind(str(path))
            path.chmod(0o600)
            self._server.listen(256)
            self._server.setblocking(False)
            self._selector.register(self._server, selectors.EVENT_READ)
        self._connections: list[Rank] = []
        self._standing: list[RunnerLine] = []
        self.ranks: dict[int, Rank] = {}
        self.steps: list[OutsideStep] = []
        self.arrivals: dict[int, list[float]] = {}

    def wake_on(self, descriptor: int) -> None:
        """Let `wait` return when `descriptor` is ready too."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def wait(self, timeout_s: float) -> int:
        """Wait for lines and take in those that came; how many sockets had something."""
        n_ready = 0
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            at_s = self._clock()
            if key.fileobj is self._server:
                self._accept()
            elif isinstance(key.data, Rank):
                self._read(key.data, at_s)
            else:
                continue
            n_ready += 1
        return n_ready

    def send(self, line: RunnerLine) -> None:
        """Send to every rank that is there, and to each that comes later."""
        self._standing.append(line)
        for rank in self.ranks.values():
            _send(rank, line)

    def last_index(self) -> int | None:
        """The furthest step that any rank has ended."""
        return max(
            (r.last_index for r in self.ranks.values() if r.last_index is not None), default=None
        )

    def ended_together(self, index: int, n_ranks: int) -> float | None:
        """When the last of all ranks ended that step, s; None if one has not."""
        times = self.arrivals.get(index, ())
        return max(times) if len(times) >= n_ranks else None

    def close(self) -> None:
        """Close every socket."""
        self._selector.close()
        for connection in self._connections:
            connection.socket.close()
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._server.accept()
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid, uid, _ = struct.unpack("3i", raw)
            if uid != os.getuid() or not self._belongs(pid):
                connection.close()
                return
            connection.setblocking(False)
            rank = Rank(socket=connection, pid=pid)
            self._connections.append(rank)
            self._selector.register(connection, selectors.EVENT_READ, rank)

    def _read(self, rank: Rank, at_s: float) -> None:
        try:
            data = rank.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, rank.pending = (rank.pending + data).split(b"\n")
        well = all(self._take(rank, line, at_s) for line in lines)
        if not data or not well or len(rank.pending) > _LINE_LIMIT_BYTES:
            self._selector.unregister(rank.socket)
            rank.socket.close()

    def _take(self, rank: Rank, raw: bytes, at_s: float) -> bool:
        """Take in one line; false where it is not one that may come now."""
        try:
            line = _LINE.validate_json(raw)
        except ValidationError:
            return False
        if isinstance(line, Hello):
            return self._greet(rank, line)
        if rank.number is None:
            return False
        if isinstance(line, Bye):
            rank.bye = line.reason
            return True
        return self._step(rank, rank.number, line, at_s)

    def _greet(self, rank: Rank, hello: Hello) -> bool:
        if rank.number is not None or hello.rank in self.ranks or hello.rank < 0:
            return False
        rank.number, rank.world_size = hello.rank, hello.world_size
        self.ranks[hello.rank] = rank
        for line in self._standing:
            _send(rank, line)
        return True

    def _step(self, rank: Rank, number: int, line: Stepped, at_s: float) -> bool:
        if rank.last_index is not None and line.index <= rank.last_index:
            return False
        rank.last_index = line.index
        self.steps.append(OutsideStep(rank=number, index=line.index, at_s=at_s))
        self.arrivals.setdefault(line.index, []).append(at_s)
        return True


def _send(rank: Rank, line: RunnerLine) -> None:
    """A few short lines always fit the socket's buffer; a rank that is gone gets nothing."""
    with contextlib.suppress(OSError):
        rank.socket.sendall(line.model_dump_json().encode() + b"\n")
