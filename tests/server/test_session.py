"""The session keeps only what was computed from the present."""

from pathlib import Path

from recorded_results import calibration

from infrarsi.wire.results import PredictionTable
from infrarsi_server.session import Analysis, Document, Numbers, Session

ROOT = Path("/w")


def document(name: str, text: str = "", version: int = 1) -> Document:
    path = ROOT / name
    return Document(path=path, uri=path.as_uri(), version=version, text=text)


def session_with(*documents: Document) -> Session:
    session = Session()
    session.put_root(ROOT, ROOT)
    for one in documents:
        session.put_document(one)
    return session


def test_an_analysis_of_the_present_is_kept() -> None:
    session = session_with(document("a.py"))
    analysis = Analysis(snapshot=session.snapshot(ROOT), texts={})
    assert session.keep(analysis)
    assert session.analysis(ROOT) is analysis


def test_an_analysis_of_an_older_text_is_dropped() -> None:
    session = session_with(document("a.py"))
    stale = session.snapshot(ROOT)
    session.put_document(document("a.py", "x", 2))
    assert not session.keep(Analysis(snapshot=stale, texts={}))
    assert session.analysis(ROOT) is None


def test_closing_a_document_makes_an_analysis_stale() -> None:
    session = session_with(document("a.py"))
    stale = session.snapshot(ROOT)
    session.drop_document(ROOT / "a.py")
    assert not session.is_current(stale)


def test_a_snapshot_holds_the_documents_of_its_root_only() -> None:
    session = session_with(document("a.py", "mine"))
    session.put_root(ROOT / "inner", ROOT / "inner")
    session.put_document(document("inner/b.py", "other"))
    assert session.snapshot(ROOT).overlay() == {"a.py": "mine"}
    assert session.snapshot(ROOT / "inner").overlay() == {"b.py": "other"}


def test_an_older_table_does_not_replace_a_newer() -> None:
    session = Session()
    newer = PredictionTable(contract_digest="d", version=2, rows=())
    session.put_numbers("d", Numbers(table=newer))
    session.put_numbers("d", Numbers(table=newer.model_copy(update={"version": 1})))
    assert session.numbers("d").table == newer


def test_a_table_does_not_make_the_calibration_forgotten() -> None:
    session = Session()
    measured = calibration("d")
    session.put_numbers("d", Numbers(calibration=measured))
    table = PredictionTable(contract_digest="d", version=1, rows=())
    session.put_numbers("d", Numbers(table=table))
    assert session.numbers("d") == Numbers(table=table, calibration=measured)
