"""A scripted runner that holds one campaign: for commands whose answer is known beforehand."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import recorded_results as recorded
from scripted_runner import answer, scripted_runner, stream

from infrarsi.wire.messages import (
    PROTOCOL,
    CampaignKind,
    CampaignList,
    CampaignState,
    CampaignView,
    EventBody,
    Health,
    Plan,
    Planned,
    Progressed,
    Refusal,
    StateChanged,
    Stored,
    TrialEnded,
)
from infrarsi.wire.probe import LineCost, Profile
from infrarsi.wire.results import DoctorResult, VerifyResult

PLANNED = Planned(plan=Plan(sentences=("Two runs of the baseline.",), expected_s=90.0))
PROFILE = Profile(
    step_time_s=2.0,
    data_s=0.1,
    forward_s=0.6,
    backward_s=1.2,
    communication_s=0.0,
    optimizer_s=0.05,
    other_s=0.05,
    lines=(LineCost(file="train.py", line=7, phase="forward", seconds_per_step=0.6),),
    n_steps=6,
)
DOCTOR = DoctorResult(calibration=recorded.calibration("d"), profile=PROFILE)


def campaign_view(
    kind: CampaignKind,
    state: CampaignState = "finished",
    *,
    promoted: bool = True,
    verify: VerifyResult | None = None,
    what: str = "",
    do: str = "",
    exit_code: int = 0,
) -> CampaignView:
    promotion = recorded.promotion() if promoted else None
    finished = state == "finished"
    return CampaignView(
        id="c1",
        kind=kind,
        state=state,
        created_s=0.0,
        contract_digest="d",
        what=what,
        do=do,
        exit_code=exit_code,
        doctor=DOCTOR if kind == "doctor" and finished else None,
        run=recorded.run_result(promoted=promotion) if kind == "run" and finished else None,
        verify=verify,
    )


def campaign_events(view: CampaignView) -> list[EventBody]:
    trials = [
        TrialEnded(trial=trial, best_ratio=2.0 if trial.number > 1 else 1.0, n_oom=1)
        for trial in (recorded.TRIALS[1:] if view.kind == "run" else ())
    ]
    search = Progressed(stage="search", message="micro_batch=4", done=1, total=6, left_s=80.0)
    ended = StateChanged(state=view.state, what=view.what)
    return [PLANNED, search, *trials, ended]


class Scripted:
    """What the peer was asked, and a lock that holds its events back."""

    def __init__(self, view: CampaignView) -> None:
        self.view = view
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.goes_on = threading.Event()
        self.goes_on.set()

    def reply(self, method: str, target: str) -> bytes:
        self.asked.append((method, target))
        path = target.split("?")[0]
        match (method, path):
            case ("GET", "/v1/health"):
                return answer(Health(version="0.1.0", protocol=PROTOCOL, pid=1))
            case ("PUT", "/v1/objects"):
                return answer(Stored(commits=()))
            case ("GET", "/v1/campaigns"):
                return answer(CampaignList(campaigns=(self.view,)))
            case ("GET", "/v1/events") if self.goes_on.is_set():
                bodies = campaign_events(self.view)
                return stream(*enumerate(bodies, 1))
            case ("GET", "/v1/events"):
                return stream((1, PLANNED), ends=False)
            case (_, "/v1/campaigns" | "/v1/campaigns/c1" | "/v1/campaigns/c1/stop"):
                return answer(self.view)
            case _:
                return answer(Refusal(what="No such campaign.", do="List them."), status=404)


@contextmanager
def scripted_campaign(state: Path, view: CampaignView) -> Generator[Scripted]:
    state.mkdir(parents=True, exist_ok=True)
    (state / "runner.json").write_text(json.dumps({"socket": str(state / "s"), "pid": 1}))
    scripted = Scripted(view)
    with scripted_runner(state / "s", scripted.reply, scripted.bodies):
        yield scripted
