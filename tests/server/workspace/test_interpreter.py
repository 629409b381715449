import subprocess
import sys
import venv
from pathlib import Path

import pytest
from repositories import write_files

from infrarsi.errors import ConfigError
from infrarsi_server.workspace.interpreter import (
    choose_python,
    editable_roots,
    has_torch,
    resolve_python,
)


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job with space") / ".venv"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def site_packages(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def give_torch(python: Path) -> None:
    write_files(site_packages(python), {"torch/__init__.py": "raise SystemExit('was imported')\n"})


def test_only_an_interpreter_with_torch_has_torch(bare_python: Path, tmp_path: Path) -> None:
    assert has_torch(Path(sys.executable))
    assert not has_torch(bare_python)
    assert not has_torch(tmp_path / "missing")


def test_the_workspaces_own_environment_wins_where_it_has_torch(
    bare_python: Path, tmp_path: Path
) -> None:
    root = bare_python.parents[2]
    active = {"VIRTUAL_ENV": sys.prefix, "PATH": ""}
    assert choose_python(root, active).python == f"{sys.prefix}/bin/python"
    give_torch(bare_python)
    choice = choose_python(root, active)
    assert (choice.python, choice.has_torch) == (".venv/bin/python", True)


def test_without_torch_anywhere_the_choice_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infrarsi_server.workspace.interpreter.has_torch", lambda _: False)
    choice = choose_python(tmp_path, {"PATH": ""})
    assert not choice.has_torch
    assert "No interpreter with torch" in choice.note


def test_a_configured_interpreter_is_resolved_and_links_are_kept(
    bare_python: Path, tmp_path: Path
) -> None:
    root = bare_python.parents[2]
    assert resolve_python(root, ".venv/bin/python", {}) == bare_python
    on_path = {"PATH": str(bare_python.parent)}
    assert resolve_python(tmp_path, "python", on_path) == bare_python
    for missing in ("gone/bin/python", "no-such-python"):
        with pytest.raises(ConfigError, match="was not found"):
            resolve_python(tmp_path, missing, on_path)


def test_editable_installs_inside_the_workspace_are_found(
    bare_python: Path, tmp_path: Path
) -> None:
    root = write_files(
        tmp_path / "w s",
        {"pkg/src/pkg/__init__.py": "", "flat/flat/__init__.py": "", "old/o.py": ""},
    )
    outside = write_files(tmp_path / "outside", {"x.py": ""})
    packages = site_packages(bare_python)
    finder = f"MAPPING: dict[str, str] = {{'flat': '{root}/flat/flat'}}\n"
    url = f'{{"url": "{root.as_uri()}/pkg", "dir_info": {{"editable": true}}}}'
    write_files(
        packages,
        {
            "old.pth": f"{root}/old\n{outside}\nimport os; os._exit(3) if False else None\n",
            "__editable___flat_1_0_finder.py": finder,
            "odd-1.0.dist-info/METADATA": "Name: odd\nVersion: 1.0\n",
            "odd-1.0.dist-info/direct_url.json": "{broken",
            "pkg-1.0.dist-info/METADATA": "Name: pkg\nVersion: 1.0\n",
            "pkg-1.0.dist-info/direct_url.json": url,
        },
    )
    found = editable_roots(bare_python, root)
    assert set(found) == {str(root / "old"), str(root / "flat"), str(root / "pkg" / "src")}


def test_an_interpreter_that_cannot_say_has_no_editable_installs(tmp_path: Path) -> None:
    assert editable_roots(tmp_path / "missing", tmp_path) == ()
    assert editable_roots(Path("/bin/false"), tmp_path) == ()
