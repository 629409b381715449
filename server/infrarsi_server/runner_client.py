"""The only caller of the runner: HTTP and server-sent events over its unix socket.

Every foreign exception becomes one of `infrarsi.errors`. Finding and starting a daemon on this
machine is `runner_process`.
"""

import re
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import httpx
from httpx_sse import SSEError, connect_sse
from pydantic import ValidationError

from infrarsi.errors import (
    RequestRefused,
    RunnerError,
    RunnerRefused,
    RunnerUnreachable,
    UsageError,
    VersionMismatch,
)
from infrarsi.frozen import Frozen
from infrarsi.wire.messages import (
    PROTOCOL,
    CampaignList,
    CampaignView,
    Event,
    Health,
    Refusal,
    StartCampaign,
    StateChanged,
    Stored,
)
from infrarsi.wire.results import PredictionTable

ENDED = frozenset({"finished", "failed", "stopped"})
"""States a campaign does not leave."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_EVENTS_TIMEOUT = httpx.Timeout(5.0, read=60.0)
_SILENT = ("The runner does not answer.", "See `infrarsi runner status`.")
_BACK_OFF_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_Answer = TypeVar("_Answer", bound=Frozen)


class RunnerClient:
    """One daemon. Calls block; they may come from several threads."""

    def __init__(self, path: Path) -> None:
        """Connect to nothing yet."""
        self.path = path
        transport = httpx.HTTPTransport(uds=str(path))
        self._http = httpx.Client(transport=transport, base_url="http://runner", timeout=_TIMEOUT)

    def __enter__(self) -> "RunnerClient":
        """Use it as a context to close its connections."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def health(self) -> Health:
        """Who answers.

        Raises:
            RunnerUnreachable: nobody does.
            VersionMismatch: it speaks another protocol.
        """
        self._knock()
        with _mapped():
            answer = self._http.get("/v1/health")
            spoken = answer.json().get("protocol") if answer.is_success else None
        if spoken is not None and spoken != PROTOCOL:
            raise VersionMismatch(
                f"The runner speaks protocol {spoken}, this side speaks {PROTOCOL}.",
                "Run `infrarsi runner stop`; the next command starts a matching one.",
            )
        return _decode(answer, Health)

    def store(self, bundle: bytes) -> Stored:
        """Hand over commits as a git bundle."""
        with _mapped():
            answer = self._http.put("/v1/objects", content=bundle)
        return _decode(answer, Stored)

    def start(self, request: StartCampaign) -> CampaignView:
        """Start a campaign; the same request again is harmless.

        Raises:
            RequestRefused: the id was used for another request.
            RunnerRefused: the machine does not allow it.
        """
        headers = {"content-type": "application/json"}
        with _mapped():
            answer = self._http.post(
                "/v1/campaigns", content=request.model_dump_json().encode(), headers=headers
            )
        return _decode(answer, CampaignView)

    def campaigns(self) -> tuple[CampaignView, ...]:
        """All campaigns, newest first."""
        with _mapped():
            answer = self._http.get("/v1/campaigns")
        return _decode(answer, CampaignList).campaigns

    def campaign(self, campaign: str) -> CampaignView:
        """One campaign; UsageError where there is none of that id."""
        path = _path_of(campaign)
        with _mapped():
            answer = self._http.get(path)
        return _decode(answer, CampaignView)

    def stop(self, campaign: str) -> CampaignView:
        """Ask a campaign to stop: it ends without a result. UsageError where there is none."""
        path = _path_of(campaign)
        with _mapped():
            answer = self._http.post(f"{path}/stop")
        return _decode(answer, CampaignView)

    def predictions(self, digest: str) -> PredictionTable | None:
        """The newest prediction table of a contract, if one is published."""
        with _mapped():
            answer = self._http.get(f"/v1/predictions/{digest}")
        return None if answer.status_code == 404 else _decode(answer, PredictionTable)

    def dismiss(self) -> bool:
        """Ask a daemon of any protocol to end; whether it took that.

        Running campaigns are resumed by the next one.

        Raises:
            RunnerUnreachable: nobody answers.
        """
        self._knock()
        with _mapped():
            return self._http.post("/v1/shutdown").is_success

    def events(
        self,
        campaign: str,
        after: int = 0,
        revive: Callable[[], object] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Generator[Event]:
        """The campaign's events behind sequence number `after`, to its end.

        A broken connection is taken up again behind the last event, with growing pauses.

        Args:
            campaign: its id.
            after: 0 for all.
            revive: called where nobody answers, to start the daemon again.
            sleep: waits that many seconds.

        Raises:
            RunnerUnreachable: nobody has answered over all attempts.
            UsageError: there is no such campaign.
        """
        _path_of(campaign)
        failures = 0
        while True:
            try:
                for event in self._stream(campaign, after):
                    after, failures = event.seq, 0
                    yield event
                    if isinstance(event.body, StateChanged) and event.body.state in ENDED:
                        return
                if self.campaign(campaign).state in ENDED:
                    return
            except RunnerUnreachable:
                if failures == len(_BACK_OFF_S):
                    raise
                if revive is not None:
                    revive()
            sleep(_BACK_OFF_S[min(failures, len(_BACK_OFF_S) - 1)])
            failures += 1

    def _knock(self) -> None:
        """Find out whether anybody listens; httpcore leaks its socket where nobody does."""
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_TIMEOUT.connect)
            try:
                knocking.connect(str(self.path))
            except OSError as error:
                raise RunnerUnreachable(*_SILENT) from error

    def _stream(self, campaign: str, after: int) -> Iterator[Event]:
        self._knock()
        parameters = {"campaign": campaign, "after": str(after)}
        with (
            _mapped(),
            connect_sse(
                self._http, "GET", "/v1/events", params=parameters, timeout=_EVENTS_TIMEOUT
            ) as source,
        ):
            if not source.response.is_success:
                source.response.read()
                _refuse(source.response)
            for message in source.iter_sse():
                if message.data:
                    yield _parse(message.data, Event)


def _path_of(campaign: str) -> str:
    if not _ID.fullmatch(campaign):
        raise UsageError(f"`{campaign[:80]}` is no campaign's id.", _LIST)
    return f"/v1/campaigns/{campaign}"


@contextmanager
def _mapped() -> Generator[None]:
    try:
        yield
    except httpx.TransportError as error:
        raise RunnerUnreachable(*_SILENT) from error
    except (httpx.HTTPError, httpx.InvalidURL, SSEError, ValueError) as error:
        raise RunnerError(f"The runner answered oddly: {error}.", _RESTART) from error


_RESTART = "Run `infrarsi runner stop` and try again."
_LIST = "List them with: infrarsi runner status"


def _decode(answer: httpx.Response, kind: type[_Answer]) -> _Answer:
    if not answer.is_success:
        _refuse(answer)
    return _parse(answer.text, kind)


def _parse(text: str, kind: type[_Answer]) -> _Answer:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise VersionMismatch(
            f"The runner's {kind.__name__} cannot be read by this version.", _RESTART
        ) from error


def _refuse(answer: httpx.Response) -> None:
    try:
        refusal = Refusal.model_validate_json(answer.text)
    except ValidationError as error:
        raise RunnerError(
            f"The runner failed with status {answer.status_code}.", _RESTART
        ) from error
    match answer.status_code:
        case 404:
            raise RequestRefused(refusal.what, _LIST)
        case 400:
            raise RequestRefused(refusal.what, refusal.do)
        case _:
            raise RunnerRefused(refusal.what, refusal.do)
