"""Numbers for hovers: asked of a runner that is already up, kept for when it is not.

They are looked up and never fitted here, and no runner is started for a hover. What the runner
said last is kept in the state folder, so that hovers have numbers after a reboot.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from infrarsi.errors import InfraRSIError
from infrarsi_server.lsp.background import call_in_background
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.session import Numbers

logger = logging.getLogger(__name__)

ASK_AGAIN_S = 5.0
PATIENCE_S = 1.0


async def look_up_numbers(ls: InfraRSIServer, digest: str) -> Numbers:
    """The newest numbers of a contract that are at hand within a second."""
    now_s = asyncio.get_running_loop().time()
    last_s = ls.numbers_asked_s.get(digest)
    if last_s is None or now_s - last_s >= ASK_AGAIN_S:
        ls.numbers_asked_s[digest] = now_s
        asking = asyncio.create_task(_refresh(ls, digest))
        await asyncio.wait({asking}, timeout=PATIENCE_S)
    return ls.session.numbers(digest)


async def _refresh(ls: InfraRSIServer, digest: str) -> None:
    numbers = await call_in_background(lambda: _ask_runner(ls.environ, digest))
    ls.session.put_numbers(digest, numbers)


def _ask_runner(environ: Mapping[str, str], digest: str) -> Numbers:
    from infrarsi_server.runner_process import find_runner, state_folder

    state = state_folder(environ)
    kept = state / "numbers" / f"{digest}.json"
    try:
        runner = find_runner(state)
        if runner is None:
            return _read_kept(kept)
        with runner:
            doctors = [c.doctor for c in runner.campaigns() if c.contract_digest == digest]
            measured = next((doctor for doctor in doctors if doctor is not None), None)
            numbers = Numbers(
                table=runner.predictions(digest),
                calibration=None if measured is None else measured.calibration,
            )
    except InfraRSIError as error:
        logger.warning("No predictions: %s", error)
        return _read_kept(kept)
    if numbers != Numbers():
        _write_kept(kept, numbers)
    return numbers


def _read_kept(path: Path) -> Numbers:
    try:
        return Numbers.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return Numbers()


def _write_kept(path: Path, numbers: Numbers) -> None:
    written = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written.write_text(numbers.model_dump_json(), encoding="utf-8")
        written.replace(path)
    except OSError as error:
        logger.warning("The numbers were not kept: %s", error)
