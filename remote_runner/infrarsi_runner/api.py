"""The daemon's HTTP routes, as `infrarsi.wire.messages` lists them. Adapters only.

Handlers never wait on the event loop: whatever touches disk or git runs on a worker thread.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError
from sse_starlette import EventSourceResponse

from infrarsi.errors import UsageError
from infrarsi.wire.messages import PROTOCOL, CampaignList, Health, StartCampaign, Stored
from infrarsi_runner.event_stream import stream_events
from infrarsi_runner.git_store import GitStore
from infrarsi_runner.journal import Journal
from infrarsi_runner.refusals import add_refusals, refuse
from infrarsi_runner.scheduler import Scheduler
from infrarsi_runner.state import State

_CAMPAIGN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REQUEST_LIMIT_BYTES = 64 << 20
_BUNDLE_LIMIT_BYTES = 4 << 30
_PING_S = 15


@dataclass(frozen=True, kw_only=True)
class Service:
    """What the routes work on. `shut_down` asks the daemon to leave; `leaving` is set then."""

    state: State
    journal: Journal
    store: GitStore
    scheduler: Scheduler
    version: str
    shut_down: Callable[[], None]
    leaving: asyncio.Event

    def health(self) -> Health:
        """Who answers."""
        return Health(
            version=self.version,
            protocol=PROTOCOL,
            pid=os.getpid(),
            running=self.scheduler.running,
        )


def make_app(service: Service) -> FastAPI:
    """The application."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    add_refusals(app, service.state)
    _add_campaign_routes(app, service)
    _add_daemon_routes(app, service)
    return app


def _add_campaign_routes(app: FastAPI, service: Service) -> None:
    @app.put("/v1/objects")
    async def put_objects(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        with tempfile.NamedTemporaryFile(dir=service.state.root, suffix=".bundle") as file:
            async for chunk in _chunks(request, _BUNDLE_LIMIT_BYTES):
                await run_in_threadpool(file.write, chunk)
            await run_in_threadpool(file.flush)
            commits = await run_in_threadpool(service.store.add_bundle, Path(file.name))
        return _answer(Stored(commits=commits))

    @app.post("/v1/campaigns")
    async def post_campaign(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        body = b"".join([chunk async for chunk in _chunks(request, _REQUEST_LIMIT_BYTES)])
        start = _parse(body)
        await run_in_threadpool(_check, start, service.store)
        return _answer(await run_in_threadpool(service.scheduler.submit, start))

    @app.get("/v1/campaigns")
    def get_campaigns() -> Response:  # pyright: ignore[reportUnusedFunction]
        return _answer(CampaignList(campaigns=service.journal.views()))

    @app.get("/v1/campaigns/{campaign}")
    def get_campaign(campaign: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        return _answer(service.journal.view(campaign))

    @app.post("/v1/campaigns/{campaign}/stop")
    def stop_campaign(campaign: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        return _answer(service.scheduler.stop(campaign))


def _add_daemon_routes(app: FastAPI, service: Service) -> None:
    @app.get("/v1/events")
    async def get_events(  # pyright: ignore[reportUnusedFunction]
        request: Request, campaign: str | None = None, after: int = 0
    ) -> Response:
        if campaign is not None:
            await run_in_threadpool(service.journal.view, campaign)
        seen = request.headers.get("last-event-id", "")
        start = int(seen) if seen.isdecimal() else after
        stream = stream_events(service.journal, campaign, start, service.leaving)
        return EventSourceResponse(stream, ping=_PING_S)

    @app.get("/v1/predictions/{digest}")
    def get_predictions(digest: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        table = service.journal.predictions(digest)
        if table is None:
            return refuse(404, "There are no predictions for that contract.", "Run doctor first.")
        return _answer(table)

    @app.get("/v1/health")
    def get_health() -> Response:  # pyright: ignore[reportUnusedFunction]
        return _answer(service.health())

    @app.post("/v1/shutdown")
    async def post_shutdown() -> Response:  # pyright: ignore[reportUnusedFunction]
        service.shut_down()
        return _answer(service.health())


def _answer(model: BaseModel) -> Response:
    return Response(model.model_dump_json(), media_type="application/json")


def _parse(body: bytes) -> StartCampaign:
    try:
        start = StartCampaign.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ".".join(map(str, first["loc"])) or "body"
        raise UsageError(
            f"The request is not a StartCampaign: {name}: {first['msg']}.",
            "Upgrade the older of the two sides.",
        ) from error
    if not _CAMPAIGN_ID.fullmatch(start.id):
        raise UsageError(
            f"{start.id[:80]!r} cannot be a campaign's id.",
            "Use up to 64 letters, digits, dots, dashes and underscores.",
        )
    return start


def _check(start: StartCampaign, store: GitStore) -> None:
    for commit in (start.source, start.candidate_source):
        if commit is not None and not store.has(commit):
            raise UsageError(
                f"The runner does not hold commit {commit[:64]!r}.", "Send it before the campaign."
            )
    for name in ("python", "workspace"):
        if not Path(getattr(start, name)).is_absolute():
            raise UsageError(f"{name} is not an absolute path.", "Send it as one.")


async def _chunks(request: Request, limit_bytes: int) -> AsyncIterator[bytes]:
    n_bytes = 0
    async for chunk in request.stream():
        n_bytes += len(chunk)
        if n_bytes > limit_bytes:
            raise UsageError(f"The body is larger than {limit_bytes} bytes.", "Send less.")
        yield chunk
