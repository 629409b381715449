"""How a campaign is told to stop: a flag that work looks at, and the exception it raises."""

import threading


class Cancelled(Exception):
    """The campaign was asked to stop. Ends the procedure; nothing half done is kept."""


class ShuttingDown(Cancelled):
    """The daemon is leaving. The campaign stays as it is and is resumed by the next one."""


class StopFlag:
    """Set from any thread; looked at by the thread that works."""

    def __init__(self) -> None:
        """Not requested."""
        self._event = threading.Event()
        self._leaving = False

    def request(self, *, leaving: bool = False) -> None:
        """Ask for a stop; `leaving` when it is the daemon that goes."""
        self._leaving = self._leaving or leaving
        self._event.set()

    @property
    def requested(self) -> bool:
        """Whether a stop was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled (or ShuttingDown) if a stop was asked for."""
        if self._event.is_set():
            raise ShuttingDown if self._leaving else Cancelled

    def wait(self, seconds: float) -> None:
        """Wait that long, or raise as soon as a stop is asked for."""
        self._event.wait(seconds)
        self.check()
