"""The map and the house rules that a test can hold."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = [
    "core/infrarsi",
    "server/infrarsi_server",
    "remote_runner/infrarsi_runner",
    "remote_runner/infrarsi_probe",
]
FORBIDDEN_NAMES = {"utils", "common", "helpers", "misc", "manager"}


def python_files() -> list[Path]:
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def test_the_map_names_only_paths_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    named = re.findall(r"`([\w.-]+/[\w./-]*)`", text)
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_the_map_names_every_package_folder() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for path in python_files()
        if path.name == "__init__.py"
    }
    assert [folder for folder in sorted(folders) if f"`{folder}/" not in text] == []


def test_files_and_functions_stay_small() -> None:
    long_files, long_functions = [], []
    for path in python_files():
        text = path.read_text()
        if text.count("\n") > 400:
            long_files.append(path.name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno
                if length > 60:
                    long_functions.append(f"{path.name}:{node.name}")
    assert (long_files, long_functions) == ([], [])


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [p.name for p in python_files() if p.stem in FORBIDDEN_NAMES] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in python_files()
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []
