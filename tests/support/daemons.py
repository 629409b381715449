"""Real daemons in real processes, spoken to over their socket."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from httpx_sse import connect_sse
from repositories import git, make_repository
from stub_runs import STUB

from infrarsi.contract.contract import Lock, Scope, TaskContract, Workload
from infrarsi.launch import Launch
from infrarsi.wire.messages import Budget, CampaignView, Event, StartCampaign, StateChanged

PROGRAM = Path(__file__).with_name("daemon_under_test.py")
LOCK = Lock(
    contract=TaskContract(
        job="tiny",
        launch=Launch(script="train.py"),
        workload=Workload(),
        scope=Scope(editable=("**",), locked=()),
    ),
    locked_files={},
    baseline_commit="0" * 40,
    digest="d" * 64,
)


class Daemon:
    """Started when made; killed when left."""

    def __init__(self, state: Path, *args: str, wrapper: Sequence[str] = ()) -> None:
        self.state = state
        self.process = subprocess.Popen(
            [*wrapper, sys.executable, str(PROGRAM), str(state), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "COVERAGE_PROCESS_START": ""},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.notice = json.loads(line)
        transport = httpx.HTTPTransport(uds=self.notice["socket"])
        self.http = httpx.Client(transport=transport, base_url="http://runner", timeout=60)

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL, as the machine would."""
        self.http.close()
        self.process.kill()
        self.process.communicate()

    def send_commit(self, folder: Path) -> str:
        """Make a repository that holds the stub job and send it."""
        if not folder.exists():
            make_repository(folder, {"train.py": STUB.read_text()})
        path = folder.parent / "sent.bundle"
        git(folder, "bundle", "create", "--quiet", str(path), "HEAD")
        answer = self.http.put("/v1/objects", content=path.read_bytes())
        assert answer.status_code == 200, answer.text
        (commit,) = answer.json()["commits"]
        return commit

    def start(self, request: StartCampaign) -> httpx.Response:
        return self.http.post("/v1/campaigns", content=request.model_dump_json())

    def view(self, campaign: str) -> CampaignView:
        answer = self.http.get(f"/v1/campaigns/{campaign}")
        return CampaignView.model_validate_json(answer.text)

    def events(
        self, campaign: str, after: int = 0, until: Callable[[Event], bool] | None = None
    ) -> list[Event]:
        """Events to the campaign's end, or to the first that fits."""
        found: list[Event] = []
        for event in self._stream(campaign, after):
            found.append(event)
            if until is not None and until(event):
                break
        return found

    def end_of(self, campaign: str) -> StateChanged:
        """Wait for the campaign's last event."""
        body = self.events(campaign)[-1].body
        assert isinstance(body, StateChanged)
        return body

    def _stream(self, campaign: str, after: int) -> Iterator[Event]:
        parameters = {"campaign": campaign, "after": str(after)}
        with connect_sse(self.http, "GET", "/v1/events", params=parameters) as source:
            assert source.response.status_code == 200, source.response.read()
            for message in source.iter_sse():
                if message.data:
                    event = Event.model_validate_json(message.data)
                    assert message.id == str(event.seq)
                    yield event


def make_request(campaign: str, commit: str, workspace: Path, **changes: Any) -> StartCampaign:
    request = StartCampaign(
        id=campaign,
        kind="verify",
        lock=LOCK,
        source=commit,
        python=sys.executable,
        workspace=str(workspace),
        budget=Budget(n_trials=4),
    )
    return request.model_copy(update=changes)
