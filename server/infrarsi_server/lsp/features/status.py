"""`infrarsi/status`: folders, jobs, violations and runner. Reads only and starts nothing."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infrarsi.errors import InfraRSIError
from infrarsi.report.findings import problem_text
from infrarsi_server.lsp.answering import answering, parse_params, render_result
from infrarsi_server.lsp.background import call_in_background
from infrarsi_server.lsp.features.actions import SETTLE_S
from infrarsi_server.lsp.features.roots import asked_root, known_roots
from infrarsi_server.lsp.language_server import InfraRSIServer, server_version
from infrarsi_server.lsp.requests import (
    JobStatus,
    RootStatus,
    RunnerStatus,
    StatusParams,
    StatusResult,
)
from infrarsi_server.session import JobAnalysis

logger = logging.getLogger(__name__)


def register(server: InfraRSIServer) -> None:
    """Answer it, as a request and as a command."""

    @server.feature("infrarsi/status")
    async def status(ls: InfraRSIServer, params: object) -> Mapping[str, Any]:
        return await _status(ls, parse_params(StatusParams, params))

    @server.command("infrarsi.server.status")
    async def status_command(ls: InfraRSIServer) -> Mapping[str, Any]:
        return await _status(ls, StatusParams())


async def _status(ls: InfraRSIServer, asked: StatusParams) -> Mapping[str, Any]:
    with answering():
        named = asked.root is not None
        roots = (await asked_root(ls, asked.root),) if named else await known_roots(ls)
    result = StatusResult(
        roots=tuple([await _root_status(ls, root) for root in roots]),
        runner=await call_in_background(lambda: _runner_status(ls.environ)),
        server_version=server_version(),
    )
    return render_result(result)


async def _root_status(ls: InfraRSIServer, root: Path) -> RootStatus:
    ls.session.put_root(root, root)
    ls.analyses.poke(root, at_once=True)
    await ls.analyses.settled(root, SETTLE_S)
    analysis = ls.session.analysis(root)
    jobs = () if analysis is None else analysis.jobs
    return RootStatus(
        root=str(root),
        jobs=tuple(_job_status(ls, job) for job in jobs),
        problem=None if analysis is None else analysis.problem,
    )


def _job_status(ls: InfraRSIServer, job: JobAnalysis) -> JobStatus:
    table = ls.session.numbers(job.lock.digest).table
    return JobStatus(
        job=job.lock.contract.job,
        digest=job.lock.digest,
        n_violations=len(job.violations),
        problems=tuple(problem_text(problem) for problem in job.reading.problems),
        table_version=None if table is None else table.version,
    )


def _runner_status(environ: Mapping[str, str]) -> RunnerStatus:
    from infrarsi_server.runner_process import find_runner, state_folder

    try:
        runner = find_runner(state_folder(environ))
        if runner is None:
            return RunnerStatus(is_running=False)
        with runner:
            health = runner.health()
    except InfraRSIError as error:
        logger.warning("The runner: %s", error)
        return RunnerStatus(is_running=False)
    return RunnerStatus(is_running=True, version=health.version, campaign=health.running)
