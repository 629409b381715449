"""What the machine and the shell do to a command, in processes of their own."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, check_schema
from jobs import JOB
from repositories import git, make_repository, write_files

COMMAND = [sys.executable, "-m", "infrarsi_server.cli.main"]


def test_json_stands_alone_on_standard_output(root: Path) -> None:
    make_repository(root, JOB)
    done = subprocess.run(
        [*COMMAND, "init", "--json"], cwd=root, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["written"] is True


def test_a_reader_that_leaves_early_does_not_keep_the_file_from_being_written(root: Path) -> None:
    make_repository(root, JOB)
    with subprocess.Popen([*COMMAND, "init"], cwd=root, stdout=subprocess.PIPE, stderr=-1) as done:
        assert done.stdout is not None
        done.stdout.close()
        assert done.stderr is not None
        said = done.stderr.read()
    assert done.returncode == 0
    assert b"Traceback" not in said
    assert (root / "infrarsi.toml").exists()


def test_an_answer_that_cannot_be_written_is_3(root: Path) -> None:
    make_repository(root, JOB)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "init", "--json"],
            cwd=root,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def test_a_full_disk_leaves_no_half_written_file(root: Path) -> None:
    make_repository(root, JOB)
    done = subprocess.run(
        [*COMMAND, "init", "--json"],
        cwd=root,
        preexec_fn=_no_room,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "cannot be written" in json.loads(done.stdout)["error"]["what"]
    assert git(root, "status", "--porcelain") == ""


def test_a_file_that_may_not_be_read_is_said(infrarsi: CommandLine, root: Path) -> None:
    make_repository(root, JOB)
    (root / "infrarsi.toml").mkdir()
    done = infrarsi("check")
    assert (done.code, "cannot be read" in done.err) == (2, True)


def test_a_fault_of_ours_is_3_and_not_a_violation(
    infrarsi: CommandLine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(root, JOB)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("infrarsi_server.cli.setup_commands.propose_init", fails)
    done = infrarsi("init", "--json")
    assert done.code == 3
    assert "fault of InfraRSI" in done.json("error")["error"]["what"]
    assert "ZeroDivisionError" in done.err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_daemon_that_cannot_serve_fails_like_every_command(
    tmp_path: Path, *, as_json: bool
) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*COMMAND, "runner", "serve", *(["--json"] if as_json else [])],
        env={**os.environ, "INFRARSI_STATE": str(tmp_path / "file" / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error: The runner's folder")
    assert "Traceback" not in done.stderr
    if as_json:
        content = json.loads(done.stdout)
        check_schema(content, "error")
        assert content["error"]["what"] in done.stderr
    else:
        assert done.stdout == ""


def test_git_that_is_missing_is_said(
    infrarsi: CommandLine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(root, JOB)
    monkeypatch.setenv("PATH", "/nonexistent")
    done = infrarsi("init")
    assert (done.code, "git was not found" in done.err) == (2, True)
