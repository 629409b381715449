"""The judge alone on one case, on real runs: no static rule is asked.

Both folders are run as `infrarsi verify` runs them, under its short protocol, by the runner's own
procedures in this process.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infrarsi.contract import make_lock
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.wire.messages import StartCampaign
from infrarsi.wire.results import VerifyResult
from infrarsi_runner.context import Context
from infrarsi_runner.git_store import GitStore
from infrarsi_runner.journal import Journal
from infrarsi_runner.launch.local import LocalLauncher
from infrarsi_runner.procedures.confirmation import Confirming
from infrarsi_runner.procedures.job import open_job
from infrarsi_runner.procedures.pairing import FrozenCandidate
from infrarsi_runner.procedures.verify import QUICK, judge_by_runs
from infrarsi_runner.state import State
from infrarsi_runner.stopping import StopFlag
from infrarsi_runner.surroundings import Surroundings
from infrarsi_server.operations.contracting import NO_COMMIT, Sides, after_contract
from infrarsi_server.operations.lock import hash_locked_files
from infrarsi_server.workspace.snapshots import snapshot_folder


def judged_live(sides: Sides, folder: Path) -> tuple[VerifyResult, JudgedEvidence | None]:
    """The judge's answer, and what it was asked about last; `folder` is for the runner's state."""
    with _context(sides, folder) as context:
        request = context.request
        job = open_job(context, request.lock, request.source)
        assert request.candidate_source is not None
        tree = context.trees.candidate(request.candidate_source, (), "after")
        frozen = FrozenCandidate(name="after", tree=tree, launch=sides.after_launch)
        confirming = Confirming(context, job, frozen, None, QUICK)
        return judge_by_runs(confirming), confirming.judged


@contextmanager
def _context(sides: Sides, folder: Path) -> Iterator[Context]:
    before, after = (
        snapshot_folder(side.root, folder / "snapshots.git") for side in (sides.before, sides.after)
    )
    state = State(folder / "state")
    state.root.mkdir(mode=0o700)
    store = GitStore(folder / "objects.git")
    for number, snapshot in enumerate((before, after)):
        bundle = folder / f"{number}.bundle"
        bundle.write_bytes(snapshot.bundle())
        store.add_bundle(bundle)
    hashes = hash_locked_files(sides.after.root, sides.after, sides.lock.contract.scope.locked)
    request = StartCampaign(
        id="red-team",
        kind="verify",
        lock=sides.lock,
        after_lock=make_lock(after_contract(sides), hashes, NO_COMMIT),
        source=before.commit,
        candidate_source=after.commit,
        python=sys.executable,
        workspace=str(sides.before.root),
        quick=True,
    )
    journal = Journal(folder / "journal.sqlite", time.time)
    surroundings = Surroundings(
        state=state,
        sockets=folder / "s",
        journal=journal,
        store=store,
        launcher=LocalLauncher(),
        environment=dict(os.environ),
    )
    journal.add(request)
    try:
        yield surroundings.open(request, StopFlag())
    finally:
        surroundings.close(request)
        journal.close()
