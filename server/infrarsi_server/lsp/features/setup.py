"""`infrarsi/init` and `infrarsi/lock`: set a workspace up from the editor.

Both ask for trust: finding the job's interpreter starts those of the workspace, and git may run
filters the repository names.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infrarsi_server.lsp.answering import answering, parse_params, render_result
from infrarsi_server.lsp.features.roots import asked_root
from infrarsi_server.lsp.features.watching import roots_changed
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.requests import InitParams, LockParams
from infrarsi_server.operations.init import InitResult, propose_init
from infrarsi_server.operations.lock import LockResult, lock_jobs
from infrarsi_server.operations.project import open_with_usable_locks


def register(server: InfraRSIServer) -> None:
    """Answer both, as requests and as commands."""

    @server.feature("infrarsi/init")
    async def init(ls: InfraRSIServer, params: object) -> Mapping[str, Any]:
        return await _init(ls, parse_params(InitParams, params))

    @server.feature("infrarsi/lock")
    async def lock(ls: InfraRSIServer, params: object) -> Mapping[str, Any]:
        return await _lock(ls, parse_params(LockParams, params))

    @server.command("infrarsi.server.init")
    async def init_command(ls: InfraRSIServer, root: str) -> Mapping[str, Any]:
        return await _init(ls, InitParams(root=root))

    @server.command("infrarsi.server.lock")
    async def lock_command(ls: InfraRSIServer, *root: str) -> Mapping[str, Any]:
        return await _lock(ls, LockParams(root=next(iter(root), None)))


async def _init(ls: InfraRSIServer, asked: InitParams) -> Mapping[str, Any]:
    with answering():
        ls.need_trust()
        root = await asked_root(ls, asked.root)
        result = await asyncio.to_thread(_propose, ls.environ, root, asked)
    await roots_changed(ls)
    return render_result(result)


def _propose(environ: Mapping[str, str], root: Path, asked: InitParams) -> InitResult:
    return propose_init(root, asked.launch, asked.python, environ, root).write()


async def _lock(ls: InfraRSIServer, asked: LockParams) -> Mapping[str, Any]:
    with answering():
        ls.need_trust()
        root = await asked_root(ls, asked.root)
        result = await asyncio.to_thread(_freeze, root, asked.job)
    await roots_changed(ls)
    return render_result(result)


def _freeze(root: Path, job: str | None) -> LockResult:
    return lock_jobs(open_with_usable_locks(root), job)
