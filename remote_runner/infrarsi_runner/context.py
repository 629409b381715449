"""What a procedure works with: memory that survives the daemon, events, runs and trees.

A procedure is a plain function of a Context. After a kill it is simply called again: everything
finished is recalled, so it arrives where it was.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter

from infrarsi.wire.messages import EventBody, StartCampaign, TableChanged
from infrarsi.wire.probe import RankEvidence
from infrarsi.wire.results import DoctorResult, PredictionTable
from infrarsi_runner.journal import Journal
from infrarsi_runner.run_spec import RunResult
from infrarsi_runner.running import Runs
from infrarsi_runner.stopping import StopFlag
from infrarsi_runner.worktrees import Trees

T = TypeVar("T")

DOCTOR_TIMED_KEY = "doctor/timed"
"""Memo of the baseline's timed run, in the campaign that measured it."""

DOCTOR_KEY = "doctor"
"""Memo of a DoctorResult made on the way by a campaign of another kind."""


class Context:
    """One campaign's."""

    def __init__(
        self,
        request: StartCampaign,
        journal: Journal,
        runs: Runs,
        trees: Trees,
        stop: StopFlag,
        now_s: Callable[[], float],
    ) -> None:
        """Bind everything; `now_s` is the time of day in s."""
        self.request = request
        self.runs = runs
        self.trees = trees
        self.now_s = now_s
        self._journal = journal
        self._stop = stop

    def once(self, key: str, type_: type[T], compute: Callable[[], T]) -> T:
        """The journal's value under `key`, else compute it and keep it, whole or not at all.

        Args:
            key: unique in the campaign and the same in every attempt.
            type_: what the value is; anything a pydantic TypeAdapter takes.
            compute: may raise; then nothing is kept.
        """
        adapter: TypeAdapter[Any] = TypeAdapter(type_)
        known = self._journal.memo(self.request.id, key)
        if known is not None:
            return adapter.validate_json(known)
        self.check()
        value = compute()
        self._journal.keep(self.request.id, key, adapter.dump_json(value).decode())
        return value

    def emit(self, body: EventBody) -> None:
        """Add an event, once more in every attempt."""
        self._journal.append(self.request.id, body)

    def emit_once(self, key: str, body: EventBody) -> None:
        """Add an event under a key, once over all attempts."""
        self._journal.append_once(self.request.id, key, body)

    def publish(self, table: PredictionTable) -> None:
        """Make a prediction table the contract's newest, and say so; once for each version."""
        self.emit_once(f"table/{table.version}", TableChanged(table=table))

    def check(self) -> None:
        """Raise Cancelled if a stop was asked for."""
        self._stop.check()

    def find_doctor(self, digest: str) -> DoctorResult | None:
        """The newest measurement of that contract on these sources with this Python, if any."""
        found = self._doctor_campaign(digest)
        if found is None:
            return None
        view = self._journal.view(found)
        if view.doctor is not None:
            return view.doctor
        kept = self._journal.memo(found, DOCTOR_KEY)
        return None if kept is None else DoctorResult.model_validate_json(kept)

    def baseline_evidence(self) -> tuple[RankEvidence, ...]:
        """Evidence of the baseline's timed run, from this campaign or the doctor's; or none."""
        campaigns = (self.request.id, self._doctor_campaign(self.request.lock.digest))
        for campaign in campaigns:
            kept = campaign and self._journal.memo(campaign, DOCTOR_TIMED_KEY)
            if kept:
                return RunResult.model_validate_json(kept).evidence
        return ()

    def _doctor_campaign(self, digest: str) -> str | None:
        """The newest finished campaign that measured the contract itself, not by recalling."""
        for request in self._journal.requests(digest):
            same = (request.python, request.source) == (self.request.python, self.request.source)
            if same and self._journal.memo(request.id, DOCTOR_TIMED_KEY) is not None:
                return request.id
        return None
