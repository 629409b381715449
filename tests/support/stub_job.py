"""A job without torch that speaks the probe's lines itself. Run as a script inside a sandbox.

    stub_job.py [--steps N] [--step-s S] [--ranks N] [--at K WHAT] [--do PYTHON]

At step K it does WHAT: crash, nan, hang, exit, kill, spin or eat (memory). `--do` is executed at
the start; what it prints is in the log.
"""

import argparse
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


class Rank:
    def __init__(self, config: dict, rank: int, ranks: int) -> None:
        self.config, self.rank, self.ranks = config, rank, ranks
        self.steps: list[dict] = []
        self.audits: list[dict] = []
        self.audit_at: set[int] = set()
        self.stop_after = config["max_steps"]
        self.line = None
        if config["control_socket"]:
            self.line = socket.socket(socket.AF_UNIX)
            self.line.connect(config["control_socket"])
            self.send(type="hello", rank=rank, world_size=ranks)
        else:
            self.stop_after = config["warmup_steps"] + config["window_steps"] - 1

    def send(self, **line: object) -> None:
        if self.line:
            self.line.sendall(json.dumps(line).encode() + b"\n")

    def obey(self) -> None:
        while self.line and select.select([self.line], [], [], 0)[0]:
            for raw in self.line.recv(65536).splitlines():
                command = json.loads(raw)
                if command["type"] == "stop":
                    self.stop_after = command["after"]
                else:
                    self.audit_at.add(command["step"])

    def ended(self, index: int, loss: float | None) -> None:
        if index in self.audit_at:
            self.audits.append({"step": index, "file": f"step{index}.bin", "tensors": []})
        if index >= self.config["warmup_steps"]:
            self.steps.append(
                {
                    "index": index,
                    "end_s": time.perf_counter(),
                    "cpu_s": 0.0,
                    "micro_steps": 1,
                    "rows": 4,
                    "tokens": 64,
                    "losses": [loss],
                }
            )
        self.send(type="step", index=index)

    def leave(self, failure: dict | None = None) -> None:
        evidence = {
            "mode": self.config["mode"],
            "rank": self.rank,
            "world_size": self.ranks,
            "pid": os.getpid(),
            "torch_version": "0",
            "python_version": sys.version.split()[0],
            "n_threads": 1,
            "steps": self.steps,
            "audits": self.audits,
            "failure": failure,
        }
        path = Path(self.config["evidence_dir"], f"rank{self.rank}.json")
        path.with_suffix(".draft").write_text(json.dumps(evidence))
        path.with_suffix(".draft").replace(path)
        self.send(type="bye", reason="done")


def act(what: str, rank: Rank) -> float | None:
    if what == "crash":
        rank.leave({"kind": "exception", "message": "ValueError: no such luck"})
        raise ValueError("no such luck")
    if what == "nan":
        return None
    if what == "hang":
        time.sleep(1000)
    if what == "exit":
        rank.leave({"kind": "exit", "message": "ended early"})
        sys.exit(0)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "eat":
        eaten = []
        while True:
            eaten.append(bytearray(os.urandom(1 << 16) * 256))
    return 1.0


def work(options: argparse.Namespace, config: dict) -> None:
    rank = Rank(config, options.rank, options.ranks)
    for index in range(options.steps):
        rank.obey()
        if index > rank.stop_after:
            break
        loss = 1.0
        if options.at and index == int(options.at[0]):
            loss = act(options.at[1], rank)
        time.sleep(options.step_s)
        rank.ended(index, loss)
    rank.leave()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--step-s", type=float, default=0.005)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--at", nargs=2)
    parser.add_argument("--do")
    options = parser.parse_args()
    if options.do:
        exec(options.do, {"os": os, "sys": sys, "time": time, "socket": socket, "Path": Path})
    config = json.loads(Path(os.environ["INFRARSI_PROBE"]).read_text())
    others = [
        subprocess.Popen([sys.executable, *sys.argv, "--rank", str(rank)])
        for rank in range(1, options.ranks)
        if options.rank == 0
    ]
    work(options, config)
    for other in others:
        other.wait()


if __name__ == "__main__":
    main()
