"""Violation: code, family, place and message; static rules and judge make the same ones."""

from typing import Literal

from infrarsi.edits import Edit
from infrarsi.frozen import Frozen
from infrarsi.place import Place

Severity = Literal["error", "warning", "info"]
Family = Literal["workload", "loss", "timing", "scope", "environment", "doctor", "promotion"]

FAMILIES: dict[str, Family] = {
    "W": "workload",
    "L": "loss",
    "T": "timing",
    "S": "scope",
    "E": "environment",
    "D": "doctor",
    "P": "promotion",
}


class Fix(Frozen):
    """A named change that mends a violation, offered and never applied by itself."""

    title: str
    edits: tuple[Edit, ...]


class Violation(Frozen):
    """One breach. `code` is from the catalogue (`W101`); `place` is where it was made."""

    code: str
    severity: Severity
    message: str
    place: Place | None = None
    contract_place: Place | None = None
    fixes: tuple[Fix, ...] = ()

    @property
    def family(self) -> Family:
        """The family the code's letter names."""
        return FAMILIES[self.code[0]]
