"""The journal: campaigns, their events, memos, live jobs and prediction tables, in one file.

A message accepted is a message kept: every method returns once its transaction is on disk, and
a transaction holds everything that must appear together. Reading goes on when the disk is full.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from pydantic import TypeAdapter
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DatabaseError

from infrarsi.errors import RunnerError, UsageError
from infrarsi.wire.messages import (
    CampaignView,
    Event,
    EventBody,
    StartCampaign,
    StateChanged,
    TableChanged,
)
from infrarsi.wire.results import DoctorResult, PredictionTable, RunResult, VerifyResult
from infrarsi_runner.disk import DiskFull, is_disk_full
from infrarsi_runner.tables import campaigns, events, memos, open_tables, predictions

Result = DoctorResult | RunResult | VerifyResult

ENDED = frozenset({"finished", "failed", "stopped"})
"""States a campaign does not leave."""

_BODY: TypeAdapter[EventBody] = TypeAdapter(EventBody)
_RESERVE_BYTES = 1 << 20


class UnknownCampaign(UsageError):
    """No campaign has that id."""

    def __init__(self, campaign: str) -> None:
        """Name it."""
        super().__init__(f"There is no campaign {campaign!r}.", "List them to see their ids.")


class Journal:
    """One daemon's journal; its methods may be called from any thread."""

    def __init__(self, path: Path, now_s: Callable[[], float]) -> None:
        """Open or make it. `now_s` is the time of day in s, for people. Raises RunnerError."""
        self.engine = open_tables(path)
        self._path = path
        self._now_s = now_s
        self._lock = threading.Lock()
        self._listeners: set[Callable[[], object]] = set()
        self._unsaved: dict[str, StateChanged] = {}
        self._keep_reserve()

    def close(self) -> None:
        """Close the file."""
        self.engine.dispose()

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Have `listener` called, from any thread, after each new event; answers its removal."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def add(self, request: StartCampaign) -> CampaignView:
        """Queue a campaign; the same request again is the same campaign.

        Raises:
            UsageError: another request has that id.
        """
        text = request.model_dump_json()
        with self.writing() as connection:
            known = connection.execute(
                sql.select(campaigns.c.request).where(campaigns.c.id == request.id)
            ).scalar_one_or_none()
            if known is None:
                connection.execute(
                    campaigns.insert().values(
                        id=request.id,
                        kind=request.kind,
                        state="queued",
                        created_s=self._now_s(),
                        digest=request.lock.digest,
                        request=text,
                    )
                )
                self._append(connection, request.id, StateChanged(state="queued"))
        if known not in (None, text):
            raise UsageError(
                f"Campaign {request.id} was started with another request.", "Choose a new id."
            )
        self._notify()
        return self.view(request.id)

    def view(self, campaign: str) -> CampaignView:
        """A campaign as it stands. Raises UnknownCampaign."""
        with self.engine.connect() as connection:
            row = connection.execute(
                sql.select(campaigns).where(campaigns.c.id == campaign)
            ).one_or_none()
        if row is None:
            raise UnknownCampaign(campaign)
        return self._view(row)

    def views(self) -> tuple[CampaignView, ...]:
        """All campaigns, newest first."""
        with self.engine.connect() as connection:
            rows = connection.execute(sql.select(campaigns).order_by(campaigns.c.number.desc()))
            return tuple(self._view(row) for row in rows)

    def next_campaign(self) -> StartCampaign | None:
        """What to work on: what was running when a daemon ended, else the longest waiting."""
        waiting = campaigns.c.state.in_(("running", "queued"))
        order = (campaigns.c.state != "running", campaigns.c.number)
        unsaved = campaigns.c.id.not_in(tuple(self._unsaved))
        query = sql.select(campaigns.c.request).where(waiting, unsaved).order_by(*order).limit(1)
        with self.engine.connect() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else StartCampaign.model_validate_json(text)

    def set_running(self, campaign: str) -> bool:
        """Note that work goes on; false where it was running before, under another daemon."""
        with self.writing() as connection:
            changed = connection.execute(
                campaigns.update()
                .where(campaigns.c.id == campaign, campaigns.c.state == "queued")
                .values(state="running")
            ).rowcount
            if changed:
                self._append(connection, campaign, StateChanged(state="running"))
        self._notify()
        return bool(changed)

    def finish(self, campaign: str, end: StateChanged, result: Result | None = None) -> None:
        """End a campaign: state, result and last event at once.

        On a full disk a reserve is given up for it; failing that the end is known to this
        daemon only, and the next one takes the campaign up again.
        """
        values = {"state": end.state, "what": end.what, "do": end.do, "exit_code": end.exit_code}
        if result is not None:
            values["result"] = result.model_dump_json()
        for attempt in (1, 2):
            try:
                with self.writing() as connection:
                    connection.execute(
                        campaigns.update().where(campaigns.c.id == campaign).values(**values)
                    )
                    self._append(connection, campaign, end)
                break
            except DiskFull:
                if attempt == 2:
                    self._unsaved[campaign] = end
                self._reserve.unlink(missing_ok=True)
        self._notify()

    def append(self, campaign: str, body: EventBody) -> None:
        """Add an event."""
        with self.writing() as connection:
            self._append(connection, campaign, body)
        self._notify()

    def append_once(self, campaign: str, key: str, body: EventBody) -> None:
        """Add an event unless one was added under that key; a new table is published with it."""
        with self.writing() as connection:
            memo = insert(memos).values(campaign=campaign, key=f"event/{key}", value="")
            if connection.execute(memo.on_conflict_do_nothing()).rowcount:
                self._append(connection, campaign, body)
                if isinstance(body, TableChanged):
                    _publish(connection, body.table)
        self._notify()

    def events_after(self, seq: int, campaign: str | None, limit: int = 500) -> list[Event]:
        """Events behind that sequence number, of one campaign or of all, in order."""
        query = sql.select(events).where(events.c.seq > seq).order_by(events.c.seq).limit(limit)
        if campaign is not None:
            query = query.where(events.c.campaign == campaign)
        with self.engine.connect() as connection:
            return [
                Event(
                    seq=row.seq,
                    campaign=row.campaign,
                    at_s=row.at_s,
                    body=_BODY.validate_json(row.body),
                )
                for row in connection.execute(query)
            ]

    def memo(self, campaign: str, key: str) -> str | None:
        """The JSON kept under that key, if any."""
        query = sql.select(memos.c.value).where(memos.c.campaign == campaign, memos.c.key == key)
        with self.engine.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

    def keep(self, campaign: str, key: str, value: str) -> None:
        """Keep JSON under a key that is free."""
        with self.writing() as connection:
            connection.execute(memos.insert().values(campaign=campaign, key=key, value=value))

    def predictions(self, digest: str) -> PredictionTable | None:
        """The newest prediction table of a contract."""
        query = sql.select(predictions.c.table).where(predictions.c.digest == digest)
        with self.engine.connect() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else PredictionTable.model_validate_json(text)

    def requests(self, digest: str) -> list[StartCampaign]:
        """Finished campaigns of a contract, newest first."""
        query = (
            sql.select(campaigns.c.request)
            .where(campaigns.c.digest == digest, campaigns.c.state == "finished")
            .order_by(campaigns.c.number.desc())
        )
        with self.engine.connect() as connection:
            texts = connection.execute(query).scalars().all()
        return [StartCampaign.model_validate_json(text) for text in texts]

    @contextmanager
    def writing(self) -> Generator[sql.Connection]:
        """A transaction; DiskFull or RunnerError where it cannot be kept."""
        try:
            with self._lock, self.engine.begin() as connection:
                yield connection
        except DatabaseError as error:
            if is_disk_full(error):
                raise DiskFull(self._path.parent) from error
            raise RunnerError(
                f"The journal {self._path} cannot be written: {error.orig}.", "Check its disk."
            ) from error

    @property
    def _reserve(self) -> Path:
        return self._path.with_suffix(".reserve")

    def _keep_reserve(self) -> None:
        """Room for the last words of a campaign that fills the disk."""
        if not self._reserve.exists():
            with suppress(OSError):
                self._reserve.write_bytes(b"\1" * _RESERVE_BYTES)

    def _append(self, connection: sql.Connection, campaign: str, body: EventBody) -> None:
        text = _BODY.dump_json(body).decode()
        connection.execute(events.insert().values(campaign=campaign, at_s=self._now_s(), body=text))

    def _view(self, row: Any) -> CampaignView:
        end = self._unsaved.get(row.id) or row
        view = CampaignView(
            id=row.id,
            kind=row.kind,
            state=end.state,
            created_s=row.created_s,
            contract_digest=row.digest,
            what=end.what,
            do=end.do,
            exit_code=end.exit_code,
        )
        if row.result is None:
            return view
        return view.model_copy(update={row.kind: _decode(row.kind, row.result)})

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()


def _decode(kind: str, text: str) -> Result:
    types = {"doctor": DoctorResult, "run": RunResult, "verify": VerifyResult}
    return types[kind].model_validate_json(text)


def _publish(connection: sql.Connection, table: PredictionTable) -> None:
    values = {"digest": table.contract_digest, "table": table.model_dump_json()}
    statement = insert(predictions).values(**values)
    connection.execute(statement.on_conflict_do_update(index_elements=["digest"], set_=values))
