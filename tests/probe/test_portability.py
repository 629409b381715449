"""The probe runs in the user's Python, from 3.9 on, beside the user's packages."""

import ast
import sys
from pathlib import Path

import pytest

import infrarsi_probe

FOLDER = Path(infrarsi_probe.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
ALLOWED = set(sys.stdlib_module_names) | {"torch", "infrarsi_probe"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_it_is_written_in_python_3_9(path: Path):
    ast.parse(path.read_text("utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_it_imports_only_the_standard_library_and_torch(path: Path):
    tree = ast.walk(ast.parse(path.read_text("utf-8")))
    names: set[str] = set()
    for node in tree:
        if isinstance(node, ast.Import):
            names |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add((node.module or "").split(".")[0])
    assert names <= ALLOWED


def test_the_door_s_folder_holds_nothing_else():
    assert [p.name for p in (FOLDER / "enter").glob("*.py")] == ["sitecustomize.py"]
