"""What a job can reach, on every level that confines."""

import json
import socket
import sys
from pathlib import Path

import pytest
from stub_runs import make_site, make_tree, processes_of_runs, stub_spec

from infrarsi.errors import RunnerError
from infrarsi_runner import sandbox
from infrarsi_runner.host import HostSettings
from infrarsi_runner.running import RunResult, Runs

LEVELS = ("bubblewrap", "landlock")


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    try:
        return sandbox.choose_sandbox(HostSettings(sandbox=request.param)).level
    except RunnerError:
        pytest.skip(f"no {request.param} here")


def run_code(folder: Path, level: str, code: str, **changes: object) -> RunResult:
    tree = make_tree(folder / "trees" / "t")
    result = Runs(make_site(folder, level)).execute(stub_spec(tree, "--do", code, **changes))
    assert result.observation.end == "finished", result.observation
    assert result.observation.sandbox_level == level
    return result


def test_a_job_writes_nowhere_but_in_its_own_folders(tmp_path: Path, level: str) -> None:
    targets = [
        tmp_path / "workspace" / "w",
        tmp_path / "trees" / "t" / "w",
        tmp_path / "runs" / "w",
        tmp_path / "probe" / "enter" / "sitecustomize.py",
        Path("/usr/w"),
        Path("/etc/w"),
        Path(sys.prefix) / "w",
    ]
    code = f"""
for path in {[str(t) for t in targets]!r}:
    try:
        Path(path).write_text("x")
    except OSError:
        pass
Path("own").write_text("x")
Path(os.environ["HOME"], "own").write_text("x")
Path(os.environ["TMPDIR"], "own").write_text("x")
"""
    run_code(tmp_path, level, code)
    assert [t for t in targets if t.exists()] == []


def test_a_job_cannot_read_the_users_home(
    tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret-of-mine")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-mine")
    code = f"""
print("started")
print(dict(os.environ))
try:
    print(Path({str(home / ".ssh" / "id")!r}).read_text())
except OSError as error:
    print(type(error).__name__)
"""
    log = run_code(tmp_path, level, code).observation.log_tail
    assert "started" in log
    assert "secret-of-mine" not in log


def test_a_workspace_that_is_the_home_is_not_shown(
    tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "data").write_text("tokens")
    code = f"""
try:
    print("read", Path({str(workspace / "data")!r}).read_text())
except OSError:
    print("hidden")
"""
    spec = stub_spec(make_tree(tmp_path / "t"), "--do", code)
    runs = Runs(make_site(tmp_path, level))
    assert "read tokens" in runs.execute(spec).observation.log_tail
    monkeypatch.setenv("HOME", str(workspace))
    assert "hidden" in runs.execute(spec).observation.log_tail


def test_bubblewrap_leaves_a_job_nothing_but_loopback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
own = socket.create_server(("127.0.0.1", 0))
socket.create_connection(own.getsockname(), timeout=5).close()
print("loopback works")
try:
    socket.create_connection({server.getsockname()!r}, timeout=2)
    print("reached the host")
except OSError as error:
    print("refused")
"""
        log = run_code(tmp_path, "bubblewrap", code).observation.log_tail
    assert "loopback works" in log
    assert "refused" in log
    assert "reached the host" not in log


def test_nothing_a_job_starts_outlives_it(tmp_path: Path, level: str) -> None:
    code = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1), os.close(2)
        time.sleep(600)
    os._exit(0)
os.wait()
"""
    run_code(tmp_path, level, code)
    assert processes_of_runs(tmp_path) == []


def test_every_run_begins_with_a_fresh_tree_and_caches(tmp_path: Path, level: str) -> None:
    code = """
places = [Path("checkpoint.pt"), Path(os.environ["XDG_CACHE_HOME"], "c")]
print("found", [str(p) for p in places if p.exists()])
for place in places:
    place.write_text("x")
"""
    tree = make_tree(tmp_path / "tree")
    runs = Runs(make_site(tmp_path, level))
    for _ in range(2):
        log = runs.execute(stub_spec(tree, "--do", code)).observation.log_tail
        assert "found []" in log
    assert [p.name for p in tree.iterdir()] == ["train.py"]


def test_the_tree_is_found_at_its_own_path_where_the_sandbox_can_mount(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "trees" / "of mine")
    result = Runs(make_site(tmp_path, "bubblewrap")).execute(
        stub_spec(tree, "--do", "print('at', os.getcwd())")
    )
    assert f"at {tree}" in result.observation.log_tail


def test_a_job_is_not_run_where_nothing_confines_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    sandbox.forget_detection()
    try:
        with pytest.raises(RunnerError, match="offers no sandbox"):
            sandbox.choose_sandbox(HostSettings(sandbox="bubblewrap"))
    finally:
        sandbox.forget_detection()


def test_only_the_hosts_own_settings_switch_confinement_off(tmp_path: Path) -> None:
    assert sandbox.choose_sandbox(HostSettings(sandbox="off")).level == "off"
    result = Runs(make_site(tmp_path, "off")).execute(stub_spec(make_tree(tmp_path / "t")))
    assert json.loads(result.model_dump_json())["observation"]["sandbox_level"] == "off"
