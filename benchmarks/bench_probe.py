"""What the probe costs a job, accounted from inside and measured from outside.

Accounted: seconds in the probe's hooks by the step time, on both examples, one and two
processes. A/B: the full probe against one that only ticks, two live processes that take turns
(the waiting one stopped), timed by their ticks, each started first in half of the pairs; the
interval is a bootstrap over pairs and over the turns within each.
"""

import argparse
import itertools
import json
import math
import os
import random
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from measures import write_measures

from infrarsi.wire.probe import PROBE_ENV, ProbeConfig, RankEvidence

ROOT = Path(__file__).resolve().parents[1]
ENTER = ROOT / "remote_runner" / "infrarsi_probe" / "enter"
EXAMPLES = {
    "dense": ROOT / "examples/dense_gpt/train.py",
    "moe": ROOT / "examples/moe_gpt/train.py",
}
LEVEL = 0.95
N_BOOTSTRAP = 10_000


def environment(config: Path, **more: str) -> dict[str, str]:
    own = {"PYTHONPATH": str(ENTER), PROBE_ENV: str(config), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, **more}


def write_config(folder: Path, **fields: object) -> tuple[ProbeConfig, Path]:
    folder.mkdir(parents=True)
    config = ProbeConfig.model_validate(
        {"mode": "timed", "evidence_dir": str(folder / "evidence"), "warmup_steps": 2, **fields}
    )
    path = folder / "config.json"
    path.write_text(config.model_dump_json(), "utf-8")
    return config, path


def accounted_pct(script: Path, ranks: int, steps: int, folder: Path) -> float:
    """Seconds in hooks by the step time, in percent; the worst rank's."""
    config, path = write_config(folder, window_steps=steps)
    command = [sys.executable, str(script)]
    if ranks > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command = [sys.executable, *torchrun, str(script)]
    log = folder / "log"
    with log.open("wb") as output:
        subprocess.run(command, env=environment(path), stdout=output, stderr=output, check=True)
    found: list[float] = []
    for file in Path(config.evidence_dir).glob("rank*.json"):
        evidence = RankEvidence.model_validate_json(file.read_bytes())
        ends = [s.end_s for s in evidence.steps]
        step_time = statistics.median(b - a for a, b in itertools.pairwise(ends))
        found.append(100 * evidence.overhead_s / evidence.overhead_steps / step_time)
    return max(found)


@dataclass
class Arm:
    """A live job that is stopped whenever it is not its turn."""

    name: str
    process: subprocess.Popen[bytes]
    listener: socket.socket
    line: socket.socket | None = None
    rest: bytes = b""
    turns: list[float] = field(default_factory=list)

    def tick(self) -> float:
        """Wait for the next tick; its arrival in s."""
        while True:
            head, separator, tail = self.rest.partition(b"\n")
            if separator:
                self.rest = tail
                if json.loads(head)["type"] == "step":
                    return time.monotonic()
                continue
            self._receive()

    def _receive(self) -> None:
        if self.line is None:
            self.listener.settimeout(120)
            self.line = self.listener.accept()[0]
        if not select.select([self.line], [], [], 120)[0]:
            raise TimeoutError(f"no tick from {self.name}")
        data = self.line.recv(1 << 16)
        if not data:
            raise ConnectionError(f"{self.name} has ended")
        self.rest += data

    def turn(self, steps: int) -> float:
        """Run so many steps, the first dropped; mean seconds of the others."""
        self.process.send_signal(signal.SIGCONT)
        first = last = self.tick()
        for _ in range(steps - 1):
            last = self.tick()
        self.process.send_signal(signal.SIGSTOP)
        return (last - first) / (steps - 1)

    def end(self) -> None:
        """Kill the job."""
        self.process.kill()
        self.process.wait()
        self.listener.close()


def start_arm(name: str, script: Path, folder: Path) -> Arm:
    """Start a job and stop it after two steps."""
    folder.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(folder / "c"))
    listener.listen()
    _, path = write_config(folder / name, control_socket=str(folder / "c"))
    minimal = {"INFRARSI_PROBE_MINIMAL": "1"} if name == "minimal" else {}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=environment(path, **minimal),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    arm = Arm(name, process, listener)
    arm.tick()
    arm.turn(2)
    return arm


def log_ratios(script: Path, first: str, turns: int, steps: int, folder: Path) -> list[float]:
    """Log of full by minimal for each couple of turns of one pair of processes."""
    order = [first, "minimal" if first == "full" else "full"]
    arms: dict[str, Arm] = {}
    try:
        for name in order:
            arms[name] = start_arm(name, script, folder / f"{name}-arm")
        found: list[float] = []
        for turn in range(turns):
            seconds = {n: arms[n].turn(steps) for n in (order if turn % 2 else order[::-1])}
            found.append(math.log(seconds["full"] / seconds["minimal"]))
        return found
    finally:
        for arm in arms.values():
            arm.end()


def bootstrap(pairs: list[list[float]], seed: int) -> tuple[float, float, float]:
    """Overhead in percent with its interval, over pairs and turns within pairs."""
    draw = random.Random(seed)

    def mean(sample: list[list[float]]) -> float:
        return statistics.fmean(statistics.median(p) for p in sample)

    means = sorted(
        mean([draw.choices(p, k=len(p)) for p in draw.choices(pairs, k=len(pairs))])
        for _ in range(N_BOOTSTRAP)
    )
    tail = int(N_BOOTSTRAP * (1 - LEVEL) / 2)
    low, high = means[tail], means[-1 - tail]
    return tuple(100 * math.expm1(v) for v in (mean(pairs), low, high))  # pyright: ignore[reportReturnType]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8, help="steps of each accounted run")
    parser.add_argument("--pairs", type=int, default=4, help="process pairs, an even number")
    parser.add_argument("--turns", type=int, default=4, help="couples of turns in each pair")
    parser.add_argument("--turn-steps", type=int, default=4, help="steps a turn, the first dropped")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for example, script in EXAMPLES.items():
            for ranks in (1, 2):
                key = f"overhead_pct_{example}_{ranks}"
                measures[key] = accounted_pct(script, ranks, options.steps, folder / key)
                print(f"{key}: {measures[key]:.3f}", flush=True)
        measures["overhead_pct"] = max(measures.values())
        pairs: list[list[float]] = []
        for pair in range(options.pairs):
            first = "full" if pair % 2 else "minimal"
            turns = (options.turns, options.turn_steps)
            pairs.append(log_ratios(EXAMPLES["dense"], first, *turns, folder / f"pair{pair}"))
            print(
                f"pair {pair + 1} of {options.pairs}: {statistics.median(pairs[-1]):+.4f}",
                flush=True,
            )
    names = ("overhead_ab_pct", "overhead_ab_low_pct", "overhead_ab_high_pct")
    measures.update(zip(names, bootstrap(pairs, options.seed), strict=True))
    print(write_measures("probe", measures))


if __name__ == "__main__":
    main()
