"""Progress of long work on a token, whoever made it; nothing without one."""

from collections.abc import Callable
from concurrent.futures import Future

from lsprotocol import types

from infrarsi.wire.messages import EventBody, Planned, Progressed, TrialEnded
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.requests import WorkDoneToken


class WorkDone:
    """One piece of work as the client shows it, from begin to end."""

    def __init__(
        self, ls: InfraRSIServer, token: WorkDoneToken | None, cancel: Callable[[], object]
    ) -> None:
        """`cancel` is called when the person cancels on the token."""
        self._ls = ls
        self._token = token
        self._cancel = cancel

    def begin(self, title: str) -> None:
        """Show the work, with a way to cancel it."""
        if self._token is None:
            return
        progress = self._ls.work_done_progress
        progress.begin(
            self._token, types.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0)
        )
        progress.tokens[self._token].add_done_callback(self._token_done)

    def report(self, body: EventBody) -> None:
        """Show what an event says of the way so far."""
        message, percentage = describe(body)
        if self._token is not None and message:
            self._ls.work_done_progress.report(
                self._token,
                types.WorkDoneProgressReport(message=message, percentage=percentage),
            )

    def end(self, message: str) -> None:
        """Show that it is over; the token is forgotten."""
        if self._token is None:
            return
        self._ls.work_done_progress.end(self._token, types.WorkDoneProgressEnd(message=message))
        self._ls.work_done_progress.tokens.pop(self._token, None)

    def _token_done(self, future: Future[object]) -> None:
        if future.cancelled():
            self._cancel()


def describe(body: EventBody) -> tuple[str, int | None]:
    """An event as one message and, where it is known, how far the work is in percent."""
    match body:
        case Planned():
            return " ".join(body.plan.sentences), None
        case Progressed():
            percentage = min(100 * body.done // body.total, 100) if body.total else None
            return body.message, percentage
        case TrialEnded():
            return f"Trial {body.trial.number} has ended.", None
        case _:
            return "", None
