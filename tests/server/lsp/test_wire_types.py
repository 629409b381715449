"""What is generated from the requests is up to date, and schema and models agree."""

import json
from pathlib import Path

import jsonschema

from infrarsi_server.lsp import wire_types
from infrarsi_server.lsp.requests import METHODS, DoctorParams, StatusResult

ROOT = Path(__file__).parents[3]


def test_the_typescript_types_are_up_to_date() -> None:
    assert (ROOT / wire_types.TYPESCRIPT_PATH).read_text() == wire_types.typescript()


def test_the_schema_is_up_to_date() -> None:
    assert json.loads((ROOT / wire_types.SCHEMA_PATH).read_text()) == wire_types.schema()


def test_a_request_as_sent_fits_its_schema() -> None:
    whole = wire_types.schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    validator = jsonschema.Draft202012Validator({**whole, "$ref": "#/$defs/DoctorParams"})
    sent = DoctorParams(root="file:///w", workDoneToken="t").model_dump(by_alias=True)
    assert validator.is_valid(sent)
    assert not validator.is_valid({**sent, "jbo": "main"})


def test_every_request_is_in_the_documentation() -> None:
    page = (ROOT / "docs/lsp.md").read_text()
    for method in METHODS:
        assert f"`{method.name}`" in page
        assert method.params.__name__ in page
        assert method.result.__name__ in page


def test_the_documented_results_decode() -> None:
    text = '{"roots": [], "runner": {"is_running": false}, "server_version": "0"}'
    assert not StatusResult.model_validate_json(text).runner.is_running
