"""`infrarsi/doctor`: measure the baseline from the editor, with progress and cancel.

Cancelling, on the request or on its token, stops the campaign on the runner; closing the editor
leaves it running. The command form is for clients without custom requests: it answers at once and
its progress is the server's own.
"""

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from infrarsi.errors import InfraRSIError
from infrarsi.units import format_frac, format_seconds
from infrarsi.wire.messages import EventBody, TableChanged
from infrarsi_server.lsp.answering import answering, parse_params, render_result
from infrarsi_server.lsp.background import call_in_background
from infrarsi_server.lsp.features.roots import asked_root
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.requests import DoctorParams
from infrarsi_server.lsp.work_done import WorkDone
from infrarsi_server.operations.doctor import DoctorReport
from infrarsi_server.session import Numbers

if TYPE_CHECKING:
    from infrarsi_server.lsp.measuring import Measuring


def register(server: InfraRSIServer) -> None:
    """Answer it, as a request and as two commands."""

    @server.feature("infrarsi/doctor")
    async def doctor(ls: InfraRSIServer, params: object) -> Mapping[str, Any]:
        with answering():
            return render_result(await _doctor(ls, parse_params(DoctorParams, params)))

    @server.command("infrarsi.server.doctor")
    async def start(ls: InfraRSIServer, *where: str) -> None:
        root, job = (*where, None, None)[:2]
        asked = DoctorParams(root=root, job=job, workDoneToken=await _own_token(ls))
        task = asyncio.create_task(_doctor_in_background(ls, asked))
        ls.doctors.add(task)
        task.add_done_callback(ls.doctors.discard)

    @server.command("infrarsi.server.stop")
    def stop(ls: InfraRSIServer) -> int:
        stopping = [task for task in ls.doctors if task.cancel()]
        return len(stopping)


async def _doctor(ls: InfraRSIServer, asked: DoctorParams) -> DoctorReport:
    root = await asked_root(ls, asked.root)
    ls.need_trust()
    measuring = await asyncio.to_thread(_prepare, ls, root, asked)
    task = asyncio.current_task()
    work = WorkDone(ls, asked.work_done_token, task.cancel if task else lambda: False)
    work.begin("InfraRSI Doctor")
    outcome = "stopped"
    try:
        report = await _follow(ls, measuring, work)
        calibration = report.calibration
        ls.session.put_numbers(calibration.contract_digest, Numbers(calibration=calibration))
        outcome = _summary(report)
        return report
    except InfraRSIError as error:
        outcome = error.what
        raise
    finally:
        if not ls.is_leaving:
            work.end(outcome)


def _prepare(ls: InfraRSIServer, root: Path, asked: DoctorParams) -> "Measuring":
    from infrarsi_server.lsp.measuring import Measuring
    from infrarsi_server.operations.campaigns import Wish

    wish = Wish(id=f"doctor-{uuid.uuid4().hex[:12]}", kind="doctor", job=asked.job)
    return Measuring(root=root, wish=wish, environ=ls.environ)


async def _follow(ls: InfraRSIServer, measuring: "Measuring", work: WorkDone) -> DoctorReport:
    loop = asyncio.get_running_loop()

    def show(body: EventBody) -> None:
        if isinstance(body, TableChanged):
            ls.session.put_numbers(body.table.contract_digest, Numbers(table=body.table))
        if not ls.is_leaving:
            work.report(body)

    def report(body: EventBody) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(show, body)

    try:
        return await call_in_background(lambda: measuring.run(report))
    except asyncio.CancelledError:
        if not ls.is_leaving:
            await asyncio.shield(asyncio.to_thread(measuring.stop))
        raise


async def _doctor_in_background(ls: InfraRSIServer, asked: DoctorParams) -> None:
    try:
        report = await _doctor(ls, asked)
    except InfraRSIError as error:
        ls.tell(str(error), types.MessageType.Error)
    else:
        ls.tell(_summary(report), types.MessageType.Info)


async def _own_token(ls: InfraRSIServer) -> str | None:
    window = ls.client_capabilities.window
    if not (window and window.work_done_progress):
        return None
    token = f"infrarsi-doctor-{uuid.uuid4().hex}"
    await ls.work_done_progress.create_async(token)
    return token


def _summary(report: DoctorReport) -> str:
    calibration = report.calibration
    step = format_seconds(calibration.step_time_s.value)
    return f"Measured: {step} a step, MFU {format_frac(calibration.mfu_frac)}."
