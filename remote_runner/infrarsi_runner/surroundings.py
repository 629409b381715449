"""Opens and closes a campaign's context: its site, runs and trees, from the daemon's state."""

import importlib.util
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import RunnerError
from infrarsi.wire.messages import StartCampaign
from infrarsi_runner.context import Context
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.git_store import GitStore
from infrarsi_runner.host import read_host_settings
from infrarsi_runner.journal import Journal
from infrarsi_runner.launch.base import Launcher
from infrarsi_runner.ledger import JournalledLedger
from infrarsi_runner.run_folder import RunFolder
from infrarsi_runner.running import Runs
from infrarsi_runner.sandbox import choose_sandbox
from infrarsi_runner.site import Site
from infrarsi_runner.state import State
from infrarsi_runner.stopping import StopFlag
from infrarsi_runner.worktrees import Trees

_HASH_KEY = "site/hash-key"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What all campaigns of a daemon share. `environment` is the daemon's own."""

    state: State
    sockets: Path
    journal: Journal
    store: GitStore
    launcher: Launcher
    environment: Mapping[str, str]

    def open(self, request: StartCampaign, stop: StopFlag) -> Context:
        """The context of a campaign.

        Raises:
            ConfigError: the host's settings cannot be used.
            RunnerError: this host has no sandbox, or the probe is not installed.
        """
        host = read_host_settings(self.state.root)
        site = Site(
            runs=self.state.runs(request.id),
            sockets=self.sockets,
            probe=find_probe(),
            workspace=Path(request.workspace),
            sandbox=choose_sandbox(host),
            launcher=self.launcher,
            stop=stop,
            clock=time.monotonic,
            daemon_environment=self.environment,
            ledger=JournalledLedger(self.journal),
            readable=(self.store.path, *map(Path, host.readable)),
            hash_key=self._hash_key(request.lock.digest),
        )
        trees = Trees(self.store, self.state.trees(request.id))
        return Context(request, self.journal, Runs(site), trees, stop, time.time)

    def close(self, request: StartCampaign) -> None:
        """Remove what only the running campaign needed; logs stay."""
        remove_folder(self.state.trees(request.id))
        self.store.forget_gone_worktrees()
        runs = self.state.runs(request.id)
        for run in runs.iterdir() if runs.is_dir() else ():
            RunFolder(run).drop_workings()
            remove_folder(run / "evidence")

    def _hash_key(self, contract: str) -> str:
        """One key for all runs under a contract, so that doctor's rows compare with a trial's."""
        known = self.journal.memo(contract, _HASH_KEY)
        if known is None:
            known = secrets.token_hex(16)
            self.journal.keep(contract, _HASH_KEY, known)
        return known


def find_probe() -> Path:
    """The folder of the probe's package, which is never imported here."""
    spec = importlib.util.find_spec("infrarsi_probe")
    if spec is None or not spec.submodule_search_locations:
        raise RunnerError("The probe is not installed beside the runner.", "Reinstall infrarsi.")
    return Path(next(iter(spec.submodule_search_locations)))
