"""Runs a real job with the probe in it, as the runner would, and reads its evidence."""

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from infrarsi.wire.probe import PROBE_ENV, ProbeConfig, RankEvidence

ROOT = Path(__file__).resolve().parents[2]
ENTER = ROOT / "remote_runner" / "infrarsi_probe" / "enter"
JOBS = ROOT / "tests" / "fixtures" / "probe_jobs"
TRAIN = JOBS / "train.py"


@dataclass(frozen=True)
class JobEnd:
    """A job's end: exit code, output and the evidence of each rank that left any."""

    code: int
    output: str
    evidence: tuple[RankEvidence, ...]


def probe_environment(config: Path, **more: str) -> dict[str, str]:
    """This process's environment with the probe's door and configuration."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
    base |= {"PYTHONPATH": str(ENTER), PROBE_ENV: str(config), "OMP_NUM_THREADS": "1"}
    return base | {"PYTHONDONTWRITEBYTECODE": "1"} | more


def command(script: Path, arguments: Sequence[str], ranks: int) -> list[str]:
    """python SCRIPT …, or torchrun with so many ranks."""
    if ranks == 1:
        return [sys.executable, str(script), *arguments]
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*run, f"--nproc-per-node={ranks}", str(script), *arguments]


def read_evidence(folder: Path) -> tuple[RankEvidence, ...]:
    """Validated evidence of a folder, by rank."""
    found = [RankEvidence.model_validate_json(p.read_bytes()) for p in folder.glob("rank*.json")]
    return tuple(sorted(found, key=lambda e: e.rank))


def run_job(
    config: ProbeConfig,
    *arguments: str,
    script: Path = TRAIN,
    ranks: int = 1,
    timeout_s: float = 120.0,
    **environment: str,
) -> JobEnd:
    """Run a job to its end; the configuration lies in its evidence folder's parent."""
    job = start_job(config, *arguments, script=script, ranks=ranks, **environment)
    output, _ = job.communicate(timeout=timeout_s)
    return JobEnd(job.returncode, output, read_evidence(Path(config.evidence_dir)))


def start_job(
    config: ProbeConfig,
    *arguments: str,
    script: Path = TRAIN,
    ranks: int = 1,
    **environment: str,
) -> subprocess.Popen[str]:
    """Start a job, its output in a pipe."""
    folder = Path(config.evidence_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(folder.name + ".config.json")
    path.write_text(config.model_dump_json(), "utf-8")
    return subprocess.Popen(
        command(script, arguments, ranks),
        env=probe_environment(path, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder.parent,
    )


class Runner:
    """The runner's end of the control socket: stamps lines, sends commands, blocks nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[tuple[int, float, dict[str, object]]] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._buffers: dict[socket.socket, bytes] = {}

    def send(self, **command: object) -> None:
        """Send a command to every rank that has said hello."""
        for connection in self._buffers:
            connection.sendall(json.dumps(command).encode() + b"\n")

    def read(self) -> list[tuple[int, float, dict[str, object]]]:
        """(connection's number, arrival in s, line) of what has come; waits for something."""
        fresh: list[tuple[int, float, dict[str, object]]] = []
        for key, _ in self._selector.select(timeout=60):
            at = time.monotonic()
            if key.fileobj is self._listener:
                connection = self._listener.accept()[0]
                self._buffers[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)
                continue
            connection = cast(socket.socket, key.fileobj)
            data = connection.recv(1 << 16)
            if not data:
                self._selector.unregister(connection)
                connection.close()
                number = list(self._buffers).index(connection)
                fresh.append((number, at, {"type": "end"}))
                continue
            *lines, rest = (self._buffers[connection] + data).split(b"\n")
            self._buffers[connection] = rest
            number = list(self._buffers).index(connection)
            fresh.extend((number, at, json.loads(line)) for line in lines)
        self.lines.extend(fresh)
        return fresh

    def disconnect(self) -> None:
        """Go away as a killed runner does."""
        for connection in self._buffers:
            connection.close()
        self.close()

    def close(self) -> None:
        """Close the listening socket."""
        self._selector.close()
        self._listener.close()
