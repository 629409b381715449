"""The `infrarsi/*` requests: parameters and results, as they cross to the editor.

The extension's `wire.ts` and `docs/schemas/lsp.json` are generated from `METHODS`. Folders are
file URIs; a `root` left out means the only folder that holds an `infrarsi.toml`.
"""

from typing import NamedTuple

from infrarsi.frozen import Frozen
from infrarsi.wire.messages import CampaignState
from infrarsi.wire.results import DoctorResult
from pydantic import Field

WorkDoneToken = int | str


class InitParams(Frozen):
    """Read the job and write `infrarsi.toml` into `root`. `launch` is the line typed to start it."""

    root: str
    launch: str | None = None


class InitResult(Frozen):
    """The file and its jobs. `problems` are what could not be read; `written` is false where
    nothing had to change."""

    config: str
    jobs: tuple[str, ...]
    problems: tuple[str, ...] = ()
    written: bool


class LockParams(Frozen):
    """Freeze every job of the folder into `.infrarsi/contract.lock.json`."""

    root: str | None = None


class LockedJob(Frozen):
    """A job and its contract's digest."""

    job: str
    digest: str


class LockResult(Frozen):
    """The lock file and what it holds."""

    lock: str
    jobs: tuple[LockedJob, ...]


class DoctorParams(Frozen):
    """Measure the untouched baseline of one job.

    `job` may be left out where there is one. Progress is reported on `workDoneToken`. Cancelling
    the request, or its token, stops the campaign.
    """

    root: str | None = None
    job: str | None = None
    quick: bool = False
    work_done_token: WorkDoneToken | None = Field(default=None, alias="workDoneToken")


class DoctorAnswer(Frozen):
    """How the campaign ended; `result` is there where it finished. `what` and `do` say why not."""

    campaign: str
    job: str
    state: CampaignState
    result: DoctorResult | None = None
    what: str = ""
    do: str = ""


class StatusParams(Frozen):
    """Ask how things stand. Reads only; starts nothing."""

    root: str | None = None


class JobStatus(Frozen):
    """One job. `digest` is its lock's; `table_version` its newest prediction table's."""

    job: str
    digest: str
    n_violations: int
    problems: tuple[str, ...] = ()
    table_version: int | None = None


class RootStatus(Frozen):
    """One folder with an `infrarsi.toml`. `problem` says why it cannot be used."""

    root: str
    jobs: tuple[JobStatus, ...] = ()
    problem: str | None = None


class RunnerStatus(Frozen):
    """The runner on this machine; `campaign` is what it works on."""

    running: bool
    version: str | None = None
    campaign: str | None = None


class StatusResult(Frozen):
    """Folders with a document open or asked about, and the runner."""

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
    Method("infrarsi/doctor", DoctorParams, DoctorAnswer),
    Method("infrarsi/status", StatusParams, StatusResult),
)
"""Every request beyond the protocol's own."""
