"""Records A/A process pairs: the same job on both sides, through the runner's own pairs.

They are appended to `build/bench/noise_pairs.jsonl` one by one, so that a rerun goes on where the
last one ended; pairs of another machine stay in the file and are not used. Which side starts
first changes from pair to pair as A B B A. Leaves out what is made of them.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from measures import FOLDER, machine

from infrarsi.contract.contract import Protocol
from infrarsi.frozen import Frozen
from infrarsi.launch import Launch
from infrarsi.pair import ProcessPair
from infrarsi_runner.host import HostSettings
from infrarsi_runner.launch.local import LocalLauncher
from infrarsi_runner.running import Runs, RunSpec, Side
from infrarsi_runner.sandbox import choose_sandbox
from infrarsi_runner.site import Site
from infrarsi_runner.stopping import StopFlag
from infrarsi_runner.surroundings import find_probe

RECORDS = FOLDER / "noise_pairs.jsonl"
TINY_JOB = Path(__file__).resolve().parents[1] / "tests/fixtures/tiny_job"
ORDERS: tuple[Side, ...] = ("baseline", "candidate", "candidate", "baseline")
TIMEOUT_S = 600.0


class RecordedPair(Frozen):
    """One line of the file. `wall_s` is what the pair took in all, start-up included."""

    machine: str
    job: str
    date: str
    wall_s: float
    pair: ProcessPair

    def first_over_second(self) -> float:
        """Log ratio of the step time of the side started first over the other's."""
        ratio = self.pair.log_ratio()
        return ratio if self.pair.started_first == "baseline" else -ratio


def recorded(job: Path) -> list[RecordedPair]:
    """This machine's pairs of that job, in the order they were measured."""
    if not RECORDS.exists():
        return []
    lines = RECORDS.read_text("utf-8").splitlines()
    found = [RecordedPair.model_validate_json(line) for line in lines]
    return [r for r in found if (r.machine, r.job) == (machine(), job.name)]


def record(job: Path, n_pairs: int, protocol: Protocol) -> list[RecordedPair]:
    """Measure what is missing to `n_pairs`, and return them all."""
    known = recorded(job)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_runs() as runs:
        for number in range(len(known), n_pairs):
            made = _measure(runs, job, number, protocol)
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(made.model_dump(mode="json")) + "\n")
            known.append(made)
            print(
                f"pair {number + 1} of {n_pairs}, {made.pair.started_first} first: "
                f"{made.pair.log_ratio():+.4f} in {made.wall_s:.0f} s",
                flush=True,
            )
    return known


@contextmanager
def open_runs() -> Iterator[Runs]:
    """Runs in a folder of their own, under the sandbox this machine offers."""
    with tempfile.TemporaryDirectory(prefix="noise-") as name:
        folder = Path(name)
        (folder / "workspace").mkdir()
        yield Runs(
            Site(
                runs=folder / "runs",
                sockets=folder / "s",
                probe=find_probe(),
                workspace=folder / "workspace",
                sandbox=choose_sandbox(HostSettings()),
                launcher=LocalLauncher(),
                stop=StopFlag(),
                clock=time.monotonic,
                daemon_environment=dict(os.environ),
            )
        )


def _measure(runs: Runs, job: Path, number: int, protocol: Protocol) -> RecordedPair:
    spec = RunSpec(
        tree=job,
        launch=Launch(script="train.py"),
        python=sys.executable,
        mode="timed",
        timeout_s=TIMEOUT_S,
        label="noise",
    )
    started_s = time.monotonic()
    result = runs.pair(
        spec,
        spec,
        first=ORDERS[number % len(ORDERS)],
        turn_pairs=protocol.turn_pairs,
        steps_per_turn=protocol.steps_per_turn,
        audit=False,
        rng=random.Random(number),
    )
    for side in (result.baseline, result.candidate):
        runs.discard(side)
    if result.pair is None:
        raise RuntimeError(f"The {result.failed} of a pair with itself did not run.")
    return RecordedPair(
        machine=machine(),
        job=job.name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_s=time.monotonic() - started_s,
        pair=result.pair,
    )
