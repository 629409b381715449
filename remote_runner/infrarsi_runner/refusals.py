"""Errors on their way out of the daemon: every one becomes a Refusal with what and what to do."""

import logging

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from infrarsi.errors import InfraRSIError, UsageError
from infrarsi.wire.messages import Refusal
from infrarsi_runner.disk import DiskFull, is_disk_full
from infrarsi_runner.journal import UnknownCampaign
from infrarsi_runner.state import State

_log = logging.getLogger(__name__)


def refuse(status: int, what: str, do: str) -> Response:
    """A refusal as an answer."""
    body = Refusal(what=what, do=do).model_dump_json()
    return Response(body, status_code=status, media_type="application/json")


def add_refusals(app: FastAPI, state: State) -> None:
    """Map every exception that can reach the edge."""

    def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, InfraRSIError)
        status = 404 if isinstance(error, UnknownCampaign) else 409
        return refuse(400 if type(error) is UsageError else status, error.what, error.do)

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return refuse(
            error.status_code,
            f"{request.method} {request.url.path} is not a request this runner knows.",
            "Upgrade the older of the two sides.",
        )

    def malformed(request: Request, error: Exception) -> Response:
        return refuse(400, f"The request {request.url.path} is malformed.", "Check its parameters.")

    def unexpected(request: Request, error: Exception) -> Response:
        if is_disk_full(error):
            full = DiskFull(state.root)
            return refuse(409, full.what, full.do)
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return refuse(
            500, f"InfraRSI itself failed: {type(error).__name__}: {error}.", f"See {state.log}."
        )

    app.add_exception_handler(InfraRSIError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(OSError, unexpected)
    app.add_exception_handler(Exception, unexpected)
