"""A user's walk with real commands, a real daemon and a real job."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repositories import git, make_repository

TINY_JOB = Path(__file__).parents[1] / "fixtures" / "tiny_job" / "train.py"
LAUNCH = "OMP_NUM_THREADS=1 python train.py"
SHORT_PROTOCOL = "\n[job.main.protocol]\nturn_pairs = 1\nsteps_per_turn = 8\n"


class Walk:
    """A repository and a state folder; commands run in the one and use the other."""

    def __init__(self, folder: Path, files: Mapping[str, str] | None = None) -> None:
        self.state = folder / "state"
        self.workspace = make_repository(
            folder / "it's a workspace", files or {"train.py": TINY_JOB.read_text()}
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "infrarsi_server.cli.main", *arguments],
            cwd=self.workspace,
            env={**os.environ, "INFRARSI_STATE": str(self.state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate()
        return process.returncode, out, err

    def json(self, *arguments: str, code: int = 0) -> Any:
        returned, out, err = self.run(*arguments, "--json")
        assert returned == code, (returned, out, err)
        return json.loads(out)

    def prepare(self, config: str = "", launch: str = LAUNCH) -> None:
        """init, the user's own additions to infrarsi.toml, lock."""
        self.json("init", "--launch", launch, "--python", sys.executable, "--yes")
        path = self.workspace / "infrarsi.toml"
        table, marker, rest = path.read_text().partition("[job.main]\n")
        path.write_text(table + marker + config + rest + SHORT_PROTOCOL)
        self.json("lock")

    def kill_daemon(self) -> None:
        pid = json.loads((self.state / "runner.json").read_text())["pid"]
        os.kill(pid, signal.SIGKILL)

    def jobs(self) -> list[str]:
        """Command lines of processes that work below the state folder."""
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, NotADirectoryError):
                continue
            if str(self.state) in line:
                found.append(line.replace("\0", " "))
        return found

    def git(self, *arguments: str) -> str:
        return git(self.workspace, *arguments)

    def end(self) -> None:
        self.run("runner", "stop")
