"""The commands, run in this process or in one of their own."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from infrarsi_server.cli.main import run

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    code: int
    out: str
    err: str

    def json(self, name: str) -> Any:
        """The one document on standard output, held against its schema in docs."""
        content = json.loads(self.out)
        check_schema(content, name)
        return content


class CommandLine:
    """Runs commands in a folder, in this process; output is captured."""

    def __init__(
        self, folder: Path, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self._capture = capture
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str | Path) -> Done:
        self._monkeypatch.chdir(self.folder)
        self._capture.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Done(code, out, err)


def check_schema(content: Any, name: str) -> None:
    schema = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    jsonschema.validate(content, schema)


def start_process(folder: Path, *arguments: str, state: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "infrarsi_server.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, "INFRARSI_STATE": str(state)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Terminal:
    """A command in a process of its own whose input and error stream are a terminal."""

    def __init__(self, folder: Path, *arguments: str, state: Path) -> None:
        self._ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "INFRARSI_STATE": str(state),
            "TERM": "xterm",
            "COLUMNS": "120",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "infrarsi_server.cli.main", *arguments],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text: str) -> None:
        while text not in self.seen:
            self.seen += os.read(self._ours, 4096).decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        with suppress(OSError):
            while more := os.read(self._ours, 4096):
                self.seen += more.decode(errors="replace")
        os.close(self._ours)
        return self.process.wait(timeout=60)
