"""Findings as SARIF 2.1.0, for code scanning.

Source: the OASIS standard; only required properties and those that viewers show are written.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from infrarsi.contract.catalogue import CATALOGUE, Code
from infrarsi.report.findings import Finding
from infrarsi.report.printable import printable

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(found: Iterable[Finding], problems: Iterable[str], version: str) -> dict[str, Any]:
    """One run with the rules that fired, the results, and what could not be read.

    Args:
        found: the results.
        problems: one sentence each.
        version: InfraRSI's own.
    """
    results = list(found)
    codes = sorted({f.code for f in results})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "InfraRSI",
                        "version": version,
                        "informationUri": "https://pypi.org/project/infrarsi/",
                        "rules": [_rule(CATALOGUE[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, codes.index(f.code)) for f in results],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [_note(problem) for problem in problems],
                    }
                ],
            }
        ],
    }


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.code,
        "name": "".join(word.capitalize() for word in code.title.split()),
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.summary},
        "properties": {"family": code.family},
    }


def _result(found: Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[found.severity],
        "message": {"text": printable(found.message)},
    }
    if found.file is not None:
        result["locations"] = [{"physicalLocation": _location(found, found.file)}]
    return result


def _location(found: Finding, file: str) -> dict[str, Any]:
    region = {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": found.end_line,
        "endColumn": found.end_column,
    }
    return {
        "artifactLocation": {"uri": quote(file), "uriBaseId": "%SRCROOT%"},
        "region": {key: value for key, value in region.items() if value is not None},
    }


def _note(problem: str) -> dict[str, Any]:
    return {"level": "note", "message": {"text": printable(problem)}}
