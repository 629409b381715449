from pathlib import Path

import pytest
from command_line import CommandLine


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("INFRARSI_STATE", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / 'it\'s a "work space"'
    folder.mkdir()
    return folder


@pytest.fixture
def infrarsi(
    root: Path,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    return CommandLine(root, capsys, monkeypatch)
