import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from command_line import ROOT

from infrarsi_server.cli.answers import ANSWERS
from infrarsi_server.cli.schemas import main, schema, schema_texts


@pytest.mark.parametrize("name", list(ANSWERS))
def test_the_schema_in_docs_is_the_codes(name: str) -> None:
    committed = (ROOT / "docs/schemas" / f"{name}.json").read_text()
    assert committed == schema_texts()[f"{name}.json"], "run: make schemas"
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_the_plans_public_keys_are_required() -> None:
    assert set(schema("check")["required"]) == {"job", "violations", "problems"}
    assert set(schema("verify")["required"]) == {"verdict", "violations", "missing", "speedup"}
    report = {"contract", "calibration", "trials", "cost", "promoted"}
    assert report <= set(schema("report")["required"])


def test_the_generator_writes_where_it_is_told(tmp_path: Path) -> None:
    assert main([str(tmp_path / "new")]) == 0
    assert {p.name for p in (tmp_path / "new").iterdir()} == set(schema_texts())
    assert main([]) == 2


def test_the_editor_side_starts_without_heavy_libraries() -> None:
    heavy = "numpy scipy sklearn torch sqlalchemy anthropic fastapi uvicorn pygls libcst git"
    code = (
        "import sys, infrarsi_server.cli.main; "
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
