"""The journal's tables, and opening the file they are in."""

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sql
import sqlalchemy.event as sql_event
from sqlalchemy.exc import DatabaseError

from infrarsi.errors import RunnerError
from infrarsi_runner.disk import DiskFull, is_disk_full

VERSION = 1
schema = sql.MetaData()

campaigns = sql.Table(
    "campaigns",
    schema,
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("id", sql.Text, nullable=False, unique=True),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("state", sql.Text, nullable=False),
    sql.Column("created_s", sql.Float, nullable=False),
    sql.Column("digest", sql.Text, nullable=False, index=True),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("what", sql.Text, nullable=False, default=""),
    sql.Column("do", sql.Text, nullable=False, default=""),
    sql.Column("exit_code", sql.Integer, nullable=False, default=0),
    sql.Column("result", sql.Text),
)
events = sql.Table(
    "events",
    schema,
    sql.Column("seq", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("campaign", sql.Text, nullable=False, index=True),
    sql.Column("at_s", sql.Float, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sqlite_autoincrement=True,
)
memos = sql.Table(
    "memos",
    schema,
    sql.Column("campaign", sql.Text, primary_key=True),
    sql.Column("key", sql.Text, primary_key=True),
    sql.Column("value", sql.Text, nullable=False),
)
runs = sql.Table(
    "runs",
    schema,
    sql.Column("pid", sql.Integer, primary_key=True),
    sql.Column("start_time", sql.Integer, primary_key=True),
    sql.Column("folder", sql.Text, nullable=False),
)
predictions = sql.Table(
    "predictions",
    schema,
    sql.Column("digest", sql.Text, primary_key=True),
    sql.Column("table", sql.Text, nullable=False),
)


def open_tables(path: Path) -> sql.Engine:
    """An engine on the file, with its tables made. Writes are on disk when they return.

    Raises:
        RunnerError: the file cannot be opened, or is of a newer version.
    """
    engine = sql.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30.0})
    sql_event.listen(engine, "connect", _prepare)
    try:
        with engine.begin() as connection:
            found = connection.execute(sql.text("PRAGMA user_version")).scalar_one()
            if found <= VERSION:
                schema.create_all(connection)
                connection.execute(sql.text(f"PRAGMA user_version = {VERSION}"))
    except DatabaseError as error:
        engine.dispose()
        if is_disk_full(error):
            raise DiskFull(path.parent) from error
        raise RunnerError(
            f"The journal {path} cannot be read: {error.orig}.", "Move it away to start anew."
        ) from error
    if found > VERSION:
        engine.dispose()
        raise RunnerError(f"The journal {path} is of a newer runner.", "Upgrade this one.")
    return engine


def _prepare(connection: sqlite3.Connection, record: Any) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "journal_size_limit = 4194304"):
        connection.execute(f"PRAGMA {pragma}").close()
