"""The `infrarsi/*` requests: parameters and results, as they cross to the editor.

Results are the operations' own records. The extension's `wire.ts` and `docs/schemas/lsp.json`
are generated from `METHODS`. `root` in parameters is a folder's file URI; left out it means the
only folder that holds an `infrarsi.toml`. Folders in results are absolute paths.
"""

from typing import NamedTuple

from pydantic import Field

from infrarsi.frozen import Frozen
from infrarsi_server.operations.doctor import DoctorReport
from infrarsi_server.operations.init import InitResult
from infrarsi_server.operations.lock import LockResult

WorkDoneToken = int | str


class InitParams(Frozen):
    """Read the jobs and write `infrarsi.toml` into `root`. `launch` is the line that starts one.

    `python` is the job's own interpreter; left out, one that has torch is looked for.
    """

    root: str
    launch: str | None = None
    python: str | None = None


class LockParams(Frozen):
    """Freeze every job of the folder, or the named one, into the lock file."""

    root: str | None = None
    job: str | None = None


class DoctorParams(Frozen):
    """Measure the untouched baseline of one job; `job` may be left out where there is one.

    Progress is reported on `workDoneToken`. Cancelling the request, or its token, stops the
    campaign.
    """

    root: str | None = None
    job: str | None = None
    work_done_token: WorkDoneToken | None = Field(default=None, alias="workDoneToken")


class StatusParams(Frozen):
    """Ask how things stand. Reads only; starts nothing."""

    root: str | None = None


class JobStatus(Frozen):
    """One locked job. `table_version` is its newest prediction table's, None without one."""

    job: str
    digest: str
    n_violations: int
    problems: tuple[str, ...]
    table_version: int | None


class RootStatus(Frozen):
    """One folder with an `infrarsi.toml`. `problem` says why it cannot be used."""

    root: str
    jobs: tuple[JobStatus, ...]
    problem: str | None


class RunnerStatus(Frozen):
    """The runner on this machine; `campaign` is what it works on."""

    is_running: bool
    version: str | None = None
    campaign: str | None = None


class StatusResult(Frozen):
    """The folders asked about, and the runner."""

    roots: tuple[RootStatus, ...]
    runner: RunnerStatus
    server_version: str


class Method(NamedTuple):
    """A request's name and its two types."""

    name: str
    params: type[Frozen]
    result: type[Frozen]


METHODS: tuple[Method, ...] = (
    Method("infrarsi/init", InitParams, InitResult),
    Method("infrarsi/lock", LockParams, LockResult),
    Method("infrarsi/doctor", DoctorParams, DoctorReport),
    Method("infrarsi/status", StatusParams, StatusResult),
)
"""Every request beyond the protocol's own."""
