"""Requests, answers and events between server and runner.

    PUT  /v1/objects            a git bundle; answers Stored
    POST /v1/campaigns          StartCampaign → CampaignView (same id again is the same campaign)
    GET  /v1/campaigns          → CampaignList
    GET  /v1/campaigns/{id}     → CampaignView
    POST /v1/campaigns/{id}/stop → CampaignView
    GET  /v1/events?campaign=ID&after=SEQ   server-sent events, id = sequence number, data = Event
    GET  /v1/predictions/{contract digest} → PredictionTable or 404
    GET  /v1/health             → Health
    POST /v1/shutdown           → Health; running campaigns are left to be resumed
A refusal is a 4xx with Refusal.
"""

from typing import Annotated, Literal

from pydantic import Field

from infrarsi.contract.contract import Lock
from infrarsi.frozen import Frozen, Scalar
from infrarsi.trial import Trial
from infrarsi.wire.results import DoctorResult, PredictionTable, RunResult, VerifyResult

PROTOCOL = 1
"""Version of everything in `wire`; negotiated by Health."""

CampaignKind = Literal["doctor", "run", "verify"]
CampaignState = Literal["queued", "running", "finished", "failed", "stopped"]


class Health(Frozen):
    """Who answers."""

    name: Literal["infrarsi-runner"] = "infrarsi-runner"
    version: str
    protocol: int
    pid: int
    running: str | None = None


class Refusal(Frozen):
    """Why a request was not carried out, and what to do."""

    what: str
    do: str = ""


class Stored(Frozen):
    """Commits now known to the runner."""

    commits: tuple[str, ...]


class Budget(Frozen):
    """How much a campaign may spend."""

    n_trials: int = 12
    minutes: float = 30.0


class StartCampaign(Frozen):
    """Start work on a snapshot the runner already holds.

    `id` is chosen by the caller; sending the same again is harmless. `source` is a commit whose
    tree is the workspace as the user sees it. `python` is the job's own interpreter, absolute.
    `candidate_source` is the after-side of a verify. `quick` asks for the short protocol.
    """

    id: str
    kind: CampaignKind
    lock: Lock
    source: str
    candidate_source: str | None = None
    python: str
    editable_roots: tuple[str, ...] = ()
    workspace: str
    budget: Budget = Budget()
    seed: int = 0
    quick: bool = False
    after_lock: Lock | None = None


class Plan(Frozen):
    """What will be run and for how long, said first."""

    sentences: tuple[str, ...]
    expected_s: float


class Progressed(Frozen):
    """A stage moved on. `done` of `total` in its own unit; `left_s` where it can be said."""

    kind: Literal["progress"] = "progress"
    stage: str
    message: str
    done: int = 0
    total: int = 0
    left_s: float | None = None


class Planned(Frozen):
    """The plan of the campaign."""

    kind: Literal["plan"] = "plan"
    plan: Plan


class TrialEnded(Frozen):
    """A trial has its outcome. `changed` is what of its setting differs from the user's start."""

    kind: Literal["trial"] = "trial"
    trial: Trial
    changed: dict[str, Scalar] = {}
    best_ratio: float | None = None
    n_oom: int = 0


class TableChanged(Frozen):
    """A newer prediction table is published."""

    kind: Literal["table"] = "table"
    table: PredictionTable


class StateChanged(Frozen):
    """The campaign's state changed; the last event of a campaign is one of these."""

    kind: Literal["state"] = "state"
    state: CampaignState
    what: str = ""
    do: str = ""
    exit_code: int = 0


EventBody = Annotated[
    Planned | Progressed | TrialEnded | TableChanged | StateChanged, Field(discriminator="kind")
]


class Event(Frozen):
    """One line of the journal's stream; `seq` grows without gaps a client could miss."""

    seq: int
    campaign: str
    at_s: float
    body: EventBody


class CampaignView(Frozen):
    """A campaign as it stands."""

    id: str
    kind: CampaignKind
    state: CampaignState
    created_s: float
    contract_digest: str
    what: str = ""
    do: str = ""
    exit_code: int = 0
    doctor: DoctorResult | None = None
    run: RunResult | None = None
    verify: VerifyResult | None = None


class CampaignList(Frozen):
    """All campaigns, newest first."""

    campaigns: tuple[CampaignView, ...]
