"""The daemon's life: take the state, listen, resume, serve; leave all so that it can be resumed."""

import asyncio
import json
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

import uvicorn

from infrarsi_runner.activity import Activity
from infrarsi_runner.api import Service, make_app
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.git_store import GitStore
from infrarsi_runner.journal import Journal
from infrarsi_runner.launch.local import LocalLauncher
from infrarsi_runner.ledger import JournalledLedger
from infrarsi_runner.peers import PeerCheckedProtocol
from infrarsi_runner.scheduler import Procedures, Scheduler
from infrarsi_runner.state import State, lock_state, open_state, runtime_folder, write_notice
from infrarsi_runner.surroundings import Surroundings

_log = logging.getLogger(__name__)
_GRACE_S = 2
_IDLE_POLL_S = 0.2
_LOG_LIMIT_BYTES = 4 << 20


def serve(
    state_dir: Path,
    procedures: Procedures | None = None,
    *,
    idle_exit_s: float | None = None,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Serve a state folder until asked to leave: by a signal, a request, or idleness.

    Args:
        state_dir: the state folder, made if it is not there.
        procedures: what carries out each kind of campaign; the product's own if not given.
        idle_exit_s: leave after that many seconds without campaign and without client.
        environment: the daemon's environment.

    Raises:
        RunnerError: another daemon serves the state, or the machine does not allow it.
    """
    state = open_state(state_dir)
    lock = lock_state(state)
    try:
        _log_to(state)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with _open_service(state, procedures or _own_procedures(), environment) as parts:
            asyncio.run(_serve(*parts, idle_exit_s))
    finally:
        os.close(lock)


@contextmanager
def _open_service(
    state: State, procedures: Procedures, environment: Mapping[str, str]
) -> Generator[tuple[State, Path, Journal, GitStore, Scheduler]]:
    """Everything but the listening; leftovers of a killed daemon are ended first."""
    runtime = runtime_folder(state, environment)
    for stale in runtime.iterdir():
        remove_folder(stale) if stale.is_dir() else stale.unlink()
    journal = Journal(state.journal, time.time)
    with ExitStack() as stack:
        stack.callback(journal.close)
        stack.callback(remove_folder, runtime)
        launcher = LocalLauncher()
        JournalledLedger(journal).end_leftovers(launcher, state.root)
        store = GitStore(state.objects)
        surroundings = Surroundings(
            state=state,
            sockets=runtime,
            journal=journal,
            store=store,
            launcher=launcher,
            environment=environment,
        )
        scheduler = Scheduler(journal, state, procedures, surroundings.open, surroundings.close)
        stack.callback(scheduler.close)
        scheduler.start()
        yield state, runtime / "socket", journal, store, scheduler


async def _serve(
    state: State,
    path: Path,
    journal: Journal,
    store: GitStore,
    scheduler: Scheduler,
    idle_exit_s: float | None,
) -> None:
    """Listen until asked to leave."""
    leaving = asyncio.Event()
    service = Service(
        state=state,
        journal=journal,
        store=store,
        scheduler=scheduler,
        version=own_version(),
        shut_down=leaving.set,
        leaving=leaving,
    )
    activity = Activity(make_app(service), time.monotonic)
    server = _Server(_configuration(activity))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leaving.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    listening = _listen(path)
    with listening:
        _announce(state, path, service.version)
        watching = asyncio.create_task(_leave_in_time(server, service, activity, idle_exit_s))
        await server.serve(sockets=[listening])
        watching.cancel()
    for file in (path, state.notice):
        file.unlink(missing_ok=True)
    _log.info("left")


class _Server(uvicorn.Server):
    """Uvicorn without its signal handling, which would end the process before it has tidied."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are the daemon's own."""
        yield


def _configuration(app: Activity) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=PeerCheckedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
    )


async def _leave_in_time(
    server: _Server, service: Service, activity: Activity, idle_exit_s: float | None
) -> None:
    while not service.leaving.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(service.leaving.wait(), _IDLE_POLL_S if idle_exit_s else None)
        if idle_exit_s is not None and activity.idle_s() > idle_exit_s:
            waiting = await asyncio.to_thread(service.journal.next_campaign)
            if waiting is None and service.scheduler.running is None:
                service.leaving.set()
    server.should_exit = True


def _listen(path: Path) -> socket.socket:
    """A listening socket only this user can open; uvicorn would open it to everybody."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(128)
    return listening


def _announce(state: State, path: Path, own: str) -> None:
    notice = write_notice(state, path, own)
    _log.info("serving %s on %s", state.root, path)
    with suppress(OSError):
        sys.stdout.write(json.dumps(notice) + "\n")
        sys.stdout.flush()


def _log_to(state: State) -> None:
    if state.log.exists() and state.log.stat().st_size > _LOG_LIMIT_BYTES:
        state.log.replace(state.log.with_suffix(".log.1"))
    logging.raiseExceptions = False
    logging.basicConfig(
        filename=state.log,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        force=True,
    )


def own_version() -> str:
    """The version of the distribution, or 0 where it is run from a checkout."""
    try:
        return version("infrarsi")
    except PackageNotFoundError:
        return "0"


def _own_procedures() -> Procedures:
    from infrarsi_runner.procedures import PROCEDURES

    return cast("Procedures", PROCEDURES)
