"""Which jobs are alive, on disk, so that a daemon that comes after a killed one ends them."""

import logging
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.dialects.sqlite import insert

from infrarsi.wire.probe import PROBE_ENV
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.journal import Journal
from infrarsi_runner.launch.base import Identity, Launcher
from infrarsi_runner.process_tree import first_environment, processes_of_user, start_time
from infrarsi_runner.tables import runs

_log = logging.getLogger(__name__)


class JournalledLedger:
    """`site.Ledger` in the journal."""

    def __init__(self, journal: Journal) -> None:
        """Bind the journal."""
        self._journal = journal

    def started(self, job: Identity, folder: Path) -> None:
        """The job exists."""
        row = {"pid": job.pid, "start_time": job.start_time, "folder": str(folder)}
        with self._journal.writing() as connection:
            connection.execute(insert(runs).values(**row).on_conflict_do_nothing())

    def ended(self, job: Identity) -> None:
        """Nothing of the job exists any more."""
        this = sql.and_(runs.c.pid == job.pid, runs.c.start_time == job.start_time)
        with self._journal.writing() as connection:
            connection.execute(runs.delete().where(this))

    def end_leftovers(self, launcher: Launcher, state: Path) -> int:
        """Kill what a killed daemon left running and remove its folders; how many jobs.

        Processes that escaped their parents are known by the probe's configuration they were
        started with, which lies below `state`.
        """
        with self._journal.engine.connect() as connection:
            rows = connection.execute(sql.select(runs)).all()
        for row in rows:
            launcher.kill(Identity(pid=row.pid, start_time=row.start_time))
        _kill_strays(launcher, state)
        for row in rows:
            remove_folder(Path(row.folder))
            self.ended(Identity(pid=row.pid, start_time=row.start_time))
        if rows:
            _log.info("ended %d jobs of a runner that was killed", len(rows))
        return len(rows)


def _kill_strays(launcher: Launcher, state: Path) -> None:
    for pid in processes_of_user():
        if first_environment(pid).get(PROBE_ENV, "").startswith(f"{state}/"):
            launcher.kill(Identity(pid=pid, start_time=start_time(pid) or 0))
