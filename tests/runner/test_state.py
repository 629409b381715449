"""The state folder, its lock, its settings and the folder for sockets."""

import os
import stat
from pathlib import Path

import pytest

from infrarsi.errors import ConfigError, RunnerError
from infrarsi_runner.host import HostSettings, read_host_settings
from infrarsi_runner.state import lock_state, open_state, runtime_folder, state_folder


def test_the_state_is_named_by_the_environment_or_lies_in_the_users_folder() -> None:
    assert state_folder({"INFRARSI_STATE": "/s"}) == Path("/s")
    assert state_folder({"XDG_STATE_HOME": "/x"}) == Path("/x/infrarsi")
    assert state_folder({}) == Path.home() / ".local/state/infrarsi"


def test_one_process_holds_the_state(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state")
    held = lock_state(state)
    with pytest.raises(RunnerError, match="already serves"):
        lock_state(state)
    os.close(held)
    os.close(lock_state(state))


def test_a_state_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunnerError, match="cannot be written"):
        open_state(tmp_path / "file" / "state")


def test_sockets_lie_on_a_short_private_path_however_long_the_states_is(tmp_path: Path) -> None:
    state = open_state(tmp_path / ("long" * 50))
    folder = runtime_folder(state, {"XDG_RUNTIME_DIR": str(tmp_path / ("x" * 90))})
    try:
        assert len(os.fsencode(folder / "00000000" / "c")) <= 107
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        folder.rmdir()


def test_a_socket_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state")
    runtime = Path("/run") if len(str(tmp_path)) > 60 else tmp_path
    folder = runtime_folder(state, {"XDG_RUNTIME_DIR": str(runtime)})
    folder.rmdir()
    folder.symlink_to(tmp_path)
    try:
        with pytest.raises(RunnerError, match="belongs to somebody else"):
            runtime_folder(state, {"XDG_RUNTIME_DIR": str(runtime)})
    finally:
        folder.unlink()


def test_host_settings_are_read_or_refused(tmp_path: Path) -> None:
    assert read_host_settings(tmp_path) == HostSettings()
    (tmp_path / "host.toml").write_text('sandbox = "landlock"\nreadable = ["/data"]\n')
    assert read_host_settings(tmp_path).readable == ["/data"]
    for text in ('sandbox = "none"', "sandbox = ", "allow = 1"):
        (tmp_path / "host.toml").write_text(text)
        with pytest.raises(ConfigError, match=r"host\.toml"):
            read_host_settings(tmp_path)
