"""Works on campaigns, one at a time, on a thread of its own; takes up what a killed daemon left."""

import logging
import threading
from collections.abc import Callable, Mapping

from infrarsi.errors import InfraRSIError
from infrarsi.wire.messages import (
    CampaignKind,
    CampaignView,
    Progressed,
    StartCampaign,
    StateChanged,
)
from infrarsi_runner.context import Context
from infrarsi_runner.disk import DiskFull, is_disk_full
from infrarsi_runner.journal import ENDED, Journal, Result
from infrarsi_runner.state import State
from infrarsi_runner.stopping import Cancelled, ShuttingDown, StopFlag

_log = logging.getLogger(__name__)

Procedure = Callable[[Context], Result]
Procedures = Mapping[CampaignKind, Procedure]
OpenContext = Callable[[StartCampaign, StopFlag], Context]


class Scheduler:
    """The only thread that executes anything of a job."""

    def __init__(
        self,
        journal: Journal,
        state: State,
        procedures: Procedures,
        open_context: OpenContext,
        close_context: Callable[[StartCampaign], None],
    ) -> None:
        """Nothing runs until `start`."""
        self._journal = journal
        self._state = state
        self._procedures = procedures
        self._open_context = open_context
        self._close_context = close_context
        self._wake = threading.Condition()
        self._leaving = False
        self._running: tuple[str, StopFlag] | None = None
        self._thread = threading.Thread(target=self._work, name="scheduler", daemon=True)

    @property
    def running(self) -> str | None:
        """The campaign that is worked on."""
        current = self._running
        return current[0] if current else None

    def start(self) -> None:
        """Begin with what is running or queued in the journal."""
        self._thread.start()

    def submit(self, request: StartCampaign) -> CampaignView:
        """Queue a campaign; the same request again is the same campaign. Raises UsageError."""
        with self._wake:
            view = self._journal.add(request)
            self._wake.notify_all()
        return view

    def stop(self, campaign: str) -> CampaignView:
        """Stop a campaign, at once if it waits, soon if it runs. Raises UnknownCampaign."""
        with self._wake:
            view = self._journal.view(campaign)
            if self._running is not None and self._running[0] == campaign:
                self._running[1].request()
            elif view.state not in ENDED:
                self._journal.finish(campaign, _stopped())
        return self._journal.view(campaign)

    def close(self) -> None:
        """Interrupt what runs, leaving it to be resumed, and wait for the thread."""
        with self._wake:
            self._leaving = True
            if self._running is not None:
                self._running[1].request(leaving=True)
            self._wake.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while (request := self._next()) is not None:
            assert self._running is not None
            end, result = self._carry_out(request, self._running[1])
            if end is not None:
                self._tidy(request)
            with self._wake:
                self._running = None
                if end is not None:
                    self._journal.finish(request.id, end, result)

    def _next(self) -> StartCampaign | None:
        """Wait for a campaign; None when the daemon leaves."""
        with self._wake:
            while not self._leaving:
                request = self._journal.next_campaign()
                if request is not None:
                    self._running = (request.id, StopFlag())
                    return request
                self._wake.wait()
        return None

    def _carry_out(
        self, request: StartCampaign, stop: StopFlag
    ) -> tuple[StateChanged | None, Result | None]:
        """Run the procedure; how the campaign ended, or None where it is to be resumed."""
        try:
            if not self._journal.set_running(request.id):
                self._journal.append(request.id, _resumed())
            context = self._open_context(request, stop)
            return StateChanged(state="finished"), self._procedures[request.kind](context)
        except ShuttingDown:
            return None, None
        except Cancelled:
            return _stopped(), None
        except Exception as error:  # noqa: BLE001 - around one campaign; it is logged whole
            return self._failed(request, error), None

    def _failed(self, request: StartCampaign, error: Exception) -> StateChanged:
        if is_disk_full(error) and not isinstance(error, DiskFull):
            error = DiskFull(self._state.root)
        if isinstance(error, InfraRSIError):
            _log.info("campaign %s failed: %s", request.id, error)
            return StateChanged(
                state="failed", what=error.what, do=error.do, exit_code=error.exit_code
            )
        _log.error("campaign %s failed", request.id, exc_info=error)
        return StateChanged(
            state="failed",
            what=f"InfraRSI itself failed: {type(error).__name__}: {error}.",
            do=f"See {self._state.log} on the runner's machine, and report it.",
            exit_code=3,
        )

    def _tidy(self, request: StartCampaign) -> None:
        try:
            self._close_context(request)
        except OSError as error:
            _log.warning("what campaign %s left could not be removed: %s", request.id, error)


def _stopped() -> StateChanged:
    return StateChanged(state="stopped", what="Stopped on request.", do="Start a new one to go on.")


def _resumed() -> Progressed:
    return Progressed(stage="resume", message="The runner was started anew and goes on.")
