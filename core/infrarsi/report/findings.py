"""Findings: violations in the public shape of `check` and `verify`, and as lines of text."""

from collections.abc import Iterable

from infrarsi.contract.violation import Family, Severity, Violation
from infrarsi.frozen import Frozen
from infrarsi.reading.reading import Problem
from infrarsi.report.printable import one_line, printable


class Finding(Frozen):
    """One violation. Lines and columns are 1-based, the end exclusive; None without a place."""

    code: str
    family: Family
    severity: Severity
    file: str | None
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    message: str


def finding(violation: Violation) -> Finding:
    """The violation in its public shape."""
    place = violation.place
    return Finding(
        code=violation.code,
        family=violation.family,
        severity=violation.severity,
        file=place.file if place else None,
        line=place.line if place else None,
        column=place.column if place else None,
        end_line=place.end_line if place else None,
        end_column=place.end_column if place else None,
        message=violation.message,
    )


def findings(violations: Iterable[Violation]) -> tuple[Finding, ...]:
    """All of them, in the order of file and line; those without a place first."""
    found = (finding(violation) for violation in violations)
    return tuple(sorted(found, key=lambda f: (f.file or "", f.line or 0, f.column or 0, f.code)))


def problem_text(problem: Problem) -> str:
    """A problem of reading as one line."""
    what = one_line(problem.what)
    return what if problem.place is None else f"{problem.place}: {what}"


def as_text(found: Iterable[Finding]) -> str:
    """One clickable line each: `train.py:12:1: error W101 message`."""
    return "".join(f"{_at(f)}{f.severity} {f.code} {one_line(f.message, 500)}\n" for f in found)


def as_github(found: Iterable[Finding]) -> str:
    """Workflow commands that GitHub turns into annotations."""
    return "".join(f"{_command(f)}\n" for f in found)


def _at(found: Finding) -> str:
    if found.file is None:
        return ""
    return f"{one_line(found.file, 1000)}:{found.line}:{found.column}: "


def _command(found: Finding) -> str:
    level = "notice" if found.severity == "info" else found.severity
    properties = {
        "file": found.file,
        "line": found.line,
        "endLine": found.end_line,
        "col": found.column,
        "title": f"InfraRSI {found.code}",
    }
    listed = ",".join(f"{k}={_escape_property(v)}" for k, v in properties.items() if v is not None)
    return f"::{level} {listed}::{_escape(found.message)}"


def _escape(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(value: str | int) -> str:
    return _escape(str(value)).replace(":", "%3A").replace(",", "%2C")
