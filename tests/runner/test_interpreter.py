"""The job's Python is found wherever it lies, also below the folder the sandbox replaces."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infrarsi.errors import UsageError
from infrarsi_runner.host import HostSettings
from infrarsi_runner.interpreter import ask_interpreter
from infrarsi_runner.sandbox import choose_sandbox


@pytest.fixture
def environment() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="job-python-", dir="/tmp") as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        yield Path(folder)


def test_an_environment_below_the_temporary_folder_answers(environment: Path) -> None:
    found = ask_interpreter(str(environment / "bin" / "python"), choose_sandbox(HostSettings()))
    assert str(environment) in found.folders


def test_an_environment_behind_a_link_answers(environment: Path, tmp_path: Path) -> None:
    link = tmp_path / "linked"
    link.symlink_to(environment)
    found = ask_interpreter(str(link / "bin" / "python"), choose_sandbox(HostSettings()))
    assert {str(environment), str(link)} & set(found.folders)


def test_what_is_no_python_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="does not answer"):
        ask_interpreter(str(script), choose_sandbox(HostSettings()))
