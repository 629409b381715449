"""Prediction tables: asked of a runner that is already up, kept for when it is not.

A table is looked up and never fitted here, and no runner is started for a hover. What the runner
published last is kept in the state folder, so that hovers have numbers after a reboot.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from infrarsi.errors import InfraRSIError
from infrarsi.wire.results import PredictionTable
from infrarsi_server.lsp.background import call_in_background
from infrarsi_server.lsp.language_server import InfraRSIServer

logger = logging.getLogger(__name__)

ASK_AGAIN_S = 5.0
PATIENCE_S = 1.0


async def look_up_table(ls: InfraRSIServer, digest: str) -> PredictionTable | None:
    """The newest table of a contract that is at hand within a second."""
    now_s = asyncio.get_running_loop().time()
    last_s = ls.tables_asked_s.get(digest)
    if last_s is None or now_s - last_s >= ASK_AGAIN_S:
        ls.tables_asked_s[digest] = now_s
        asking = asyncio.create_task(_refresh(ls, digest))
        await asyncio.wait({asking}, timeout=PATIENCE_S)
    return ls.session.table(digest)


async def _refresh(ls: InfraRSIServer, digest: str) -> None:
    table = await call_in_background(lambda: _ask_runner(ls.environ, digest))
    if table is not None:
        ls.session.put_table(table)


def _ask_runner(environ: Mapping[str, str], digest: str) -> PredictionTable | None:
    from infrarsi_server.runner_process import find_runner, state_folder

    state = state_folder(environ)
    kept = _kept_path(state, digest)
    try:
        client = find_runner(state)
        if client is None:
            return _read_kept(kept)
        with client:
            table = client.predictions(digest)
    except InfraRSIError as error:
        logger.warning("No predictions: %s", error)
        return _read_kept(kept)
    if table is not None:
        _write_kept(kept, table)
    return table


def _kept_path(state: Path, digest: str) -> Path:
    return state / "tables" / f"{digest}.json"


def _read_kept(path: Path) -> PredictionTable | None:
    try:
        return PredictionTable.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None


def _write_kept(path: Path, table: PredictionTable) -> None:
    written = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written.write_text(table.model_dump_json(), encoding="utf-8")
        written.replace(path)
    except OSError as error:
        logger.warning("The table was not kept: %s", error)
