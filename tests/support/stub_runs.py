"""The stub job and the surroundings to run it in."""

import atexit
import os
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from infrarsi.launch import Launch
from infrarsi_runner.host import HostSettings
from infrarsi_runner.launch.local import LocalLauncher
from infrarsi_runner.process_tree import first_environment, processes_of_user
from infrarsi_runner.running import RunSpec
from infrarsi_runner.sandbox import choose_sandbox
from infrarsi_runner.site import Site
from infrarsi_runner.stopping import StopFlag

SOCKETS = Path(tempfile.gettempdir()) / f"infrarsi-test-{os.getpid()}"
atexit.register(shutil.rmtree, SOCKETS, ignore_errors=True)
STUB = Path(__file__).with_name("stub_job.py")


def make_site(folder: Path, sandbox: str = "auto", **changes: Any) -> Site:
    """A site below `folder`, whose probe is an empty door."""
    (folder / "probe" / "enter").mkdir(parents=True, exist_ok=True)
    (folder / "workspace").mkdir(exist_ok=True)
    site = Site(
        runs=folder / "runs",
        sockets=SOCKETS,
        probe=folder / "probe",
        workspace=folder / "workspace",
        sandbox=choose_sandbox(HostSettings(sandbox=sandbox)),
        launcher=LocalLauncher(),
        stop=StopFlag(),
        clock=time.monotonic,
        daemon_environment=dict(os.environ),
        hash_key="test",
    )
    return replace(site, **changes)


def make_tree(folder: Path, script: Path = STUB, name: str = "train.py") -> Path:
    """A tree that holds one script."""
    folder.mkdir(parents=True)
    shutil.copyfile(script, folder / name)
    return folder


def stub_spec(tree: Path, *args: str, **changes: Any) -> RunSpec:
    """A timed run of the stub job: 2 steps of warm-up, 3 of window."""
    spec = RunSpec(
        tree=tree,
        launch=Launch(script="train.py", args=args),
        python=sys.executable,
        mode="timed",
        timeout_s=30.0,
        warmup_steps=2,
        window_steps=3,
        label="stub",
    )
    return replace(spec, **changes)


def processes_of_runs(folder: Path) -> list[int]:
    """Processes that were started for a run below `folder`."""
    prefix = f"{folder}/"
    return [
        pid
        for pid in processes_of_user()
        if first_environment(pid).get("INFRARSI_PROBE", "").startswith(prefix)
    ]


def wait_for_a_run(folder: Path) -> list[int]:
    """Wait until a run below `folder` has a process."""
    while not (found := processes_of_runs(folder)):
        time.sleep(0.01)
    return found
