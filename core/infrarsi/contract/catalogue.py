"""Every violation code, once. Static rules and judge take theirs from here; codes never change.

The codes stand in `codes.toml`: the title names the breach, the summary says what the contract
asks. `docs/rules.md` is made from it and from the rules' own texts.
"""

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Literal

from infrarsi.contract.violation import FAMILIES, Family, Fix, Severity, Violation
from infrarsi.frozen import Frozen
from infrarsi.place import Place

DecidedBy = Literal["static", "judge", "both"]


class Code(Frozen):
    """One code. `decided_by` says which guard can reject on it: reading, evidence or either.

    Where `shows_in_runs` is false, a run in the sandbox may look honest though the code is broken
    (a clock read too early, state left in a folder that is private there): then a suspicion that
    reading has cannot be settled by running.
    """

    code: str
    title: str
    decided_by: DecidedBy
    summary: str
    shows_in_runs: bool = True

    @property
    def family(self) -> Family:
        """The family the code's letter names."""
        return FAMILIES[self.code[0]]


def violation(
    code: str,
    message: str,
    severity: Severity = "error",
    place: Place | None = None,
    contract_place: Place | None = None,
    fixes: tuple[Fix, ...] = (),
) -> Violation:
    """A violation of a known code; KeyError where the catalogue has no such code."""
    return Violation(
        code=CATALOGUE[code].code,
        severity=severity,
        message=message,
        place=place,
        contract_place=contract_place,
        fixes=fixes,
    )


def _load() -> dict[str, Code]:
    text = (files("infrarsi.contract") / "codes.toml").read_text("utf-8")
    return {code: Code(code=code, **fields) for code, fields in tomllib.loads(text).items()}


CATALOGUE: dict[str, Code] = _load()
"""All codes by name."""


def unsettled_by_runs(codes: Iterable[str]) -> tuple[str, ...]:
    """Those whose breach need not show in the sandbox: a suspicion keeps an acceptance open."""
    return tuple(code for code in codes if not CATALOGUE[code].shows_in_runs)
