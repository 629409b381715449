"""What is accepted is kept; what must appear together does."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql
from daemons import make_request
from pydantic import TypeAdapter

from infrarsi.errors import RunnerError, UsageError
from infrarsi.wire.messages import Event, Progressed, StateChanged, TableChanged
from infrarsi.wire.results import PredictionTable, VerifyResult
from infrarsi_runner.disk import DiskFull
from infrarsi_runner.journal import Journal, UnknownCampaign

DONE = StateChanged(state="finished")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "journal.sqlite", lambda: 1.5)
    yield journal
    journal.close()


def message(text: str) -> Progressed:
    return Progressed(stage="test", message=text)


def again(journal: Journal, tmp_path: Path) -> Journal:
    journal.close()
    return Journal(tmp_path / "journal.sqlite", lambda: 2.5)


def test_everything_is_there_after_reopening(journal: Journal, tmp_path: Path) -> None:
    request = make_request("one", "c", tmp_path)
    journal.add(request)
    journal.set_running("one")
    journal.append("one", message("half way"))
    journal.keep("one", "trial/1", "[1]")
    events = journal.events_after(0, "one")
    journal = again(journal, tmp_path)
    assert journal.next_campaign() == request
    assert journal.events_after(0, "one") == events
    assert journal.memo("one", "trial/1") == "[1]"
    assert journal.memo("one", "trial/2") is None
    journal.close()


def test_what_was_running_comes_before_what_waits(journal: Journal, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        journal.add(make_request(name, "c", tmp_path))
    journal.set_running("two")
    found = []
    while request := journal.next_campaign():
        found.append(request.id)
        journal.finish(request.id, DONE)
    assert found == ["two", "one", "three"]


def test_an_event_under_a_key_is_added_once(journal: Journal, tmp_path: Path) -> None:
    journal.add(make_request("one", "c", tmp_path))
    for _ in range(2):
        journal.append_once("one", "k", message("once"))
        journal.append("one", message("each time"))
    texts = [e.body.message for e in journal.events_after(0, "one") if e.body.kind == "progress"]
    assert texts == ["once", "each time", "each time"]


def test_a_key_for_an_event_and_one_for_a_memo_do_not_meet(journal: Journal) -> None:
    journal.append_once("one", "k", message("x"))
    assert journal.memo("one", "k") is None
    journal.keep("one", "k", "1")


def test_sequence_numbers_are_never_used_again(journal: Journal) -> None:
    journal.append("one", message("a"))
    last = journal.events_after(0, None)[-1].seq
    with journal.writing() as connection:
        connection.execute(sql.text("DELETE FROM events"))
    journal.append("one", message("b"))
    assert journal.events_after(0, None)[0].seq > last


def test_events_of_threads_do_not_get_lost(journal: Journal) -> None:
    def add(name: str) -> None:
        for number in range(20):
            journal.append(name, message(str(number)))

    threads = [threading.Thread(target=add, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journal.events_after(0, None)) == 60
    assert len(journal.events_after(0, "b")) == 20


def test_listeners_hear_of_events_after_they_can_be_read(journal: Journal) -> None:
    heard: list[int] = []
    forget = journal.listen(lambda: heard.append(len(journal.events_after(0, "one"))))
    journal.append("one", message("a"))
    forget()
    journal.append("one", message("b"))
    assert heard == [1]


def test_a_published_table_and_its_event_appear_together(journal: Journal) -> None:
    table = PredictionTable(contract_digest="d", version=3, rows=())
    journal.append_once("one", "table/3", TableChanged(table=table))
    assert journal.predictions("d") == table
    assert journal.predictions("e") is None


def test_a_result_comes_with_its_end(journal: Journal, tmp_path: Path) -> None:
    journal.add(make_request("one", "c", tmp_path))
    result = VerifyResult(verdict="rejected")
    journal.finish("one", DONE, result)
    view = journal.view("one")
    assert (view.state, view.verify) == ("finished", result)
    with pytest.raises(UnknownCampaign):
        journal.view("two")


def test_an_id_names_one_request(journal: Journal, tmp_path: Path) -> None:
    request = make_request("one", "c", tmp_path)
    assert journal.add(request) == journal.add(request)
    with pytest.raises(UsageError, match="another request"):
        journal.add(request.model_copy(update={"seed": 1}))
    assert len(journal.views()) == 1


def test_a_full_disk_keeps_what_was_whole_and_still_tells_the_end(
    journal: Journal, tmp_path: Path
) -> None:
    """SQLite's own limit on pages stands for the disk; the reserve is given up for the end."""
    journal.add(make_request("one", "c", tmp_path))
    journal.keep("one", "kept", "1")
    with journal.engine.connect() as connection:
        n_pages = connection.execute(sql.text("PRAGMA page_count")).scalar_one()
    limit = f"PRAGMA max_page_count = {n_pages}"
    sql.event.listen(journal.engine, "begin", lambda c: c.exec_driver_sql(limit))
    with pytest.raises(DiskFull, match="is full"):
        journal.keep("one", "lost", "x" * 100_000)
    assert journal.memo("one", "kept") == "1"
    assert journal.memo("one", "lost") is None
    reserve = tmp_path / "journal.reserve"
    assert reserve.stat().st_size > 0
    end = StateChanged(state="failed", what="x" * 100_000)
    journal.finish("one", end)
    assert not reserve.exists()
    assert journal.view("one").state == "failed"
    assert journal.next_campaign() is None


@pytest.mark.parametrize("text", ["not a database at all", "SQLite format 3\0" + "x" * 5000])
def test_a_broken_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "j.sqlite").write_text(text)
    with pytest.raises(RunnerError, match="cannot be read"):
        Journal(tmp_path / "j.sqlite", lambda: 0.0)


def test_a_newer_journal_is_left_alone(journal: Journal, tmp_path: Path) -> None:
    with journal.writing() as connection:
        connection.execute(sql.text("PRAGMA user_version = 99"))
    with pytest.raises(RunnerError, match="newer"):
        again(journal, tmp_path)


def test_events_decode_as_they_were_encoded(journal: Journal) -> None:
    journal.append("one", DONE)
    (event,) = journal.events_after(0, "one")
    assert TypeAdapter(Event).validate_json(event.model_dump_json()) == event
