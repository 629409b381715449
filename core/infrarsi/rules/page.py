"""`docs/rules.md`: every code of the catalogue, with the help page of its static rule."""

from collections.abc import Iterator

from infrarsi.contract.catalogue import CATALOGUE, Code
from infrarsi.rules import RULES, help_page

_FAMILIES = {
    "W": "Workload",
    "L": "Loss and numerics",
    "T": "Timing",
    "S": "Scope and integrity",
    "E": "Environment",
    "D": "Doctor's hints",
    "P": "Promotions",
}
_GUARD = {
    "static": "the source alone",
    "judge": "the evidence of runs",
    "both": "the source or the evidence of runs",
}
_HEAD = """\
# Codes

Codes are stable. The *change* is judged, never a file's style: an untouched baseline has no
findings. A static rule gives an error where it is certain and a warning where a run must decide;
what a rule leaves open the judge decides on evidence. This page is made from
`core/infrarsi/contract/codes.toml` and the rules' own texts: `make schemas` writes it again.
"""


def rules_page() -> str:
    """The whole page, in Markdown."""
    return _HEAD + "".join(_families())


def _families() -> Iterator[str]:
    letter = ""
    for code in CATALOGUE.values():
        if code.code[0] != letter:
            letter = code.code[0]
            yield f"\n## {_FAMILIES[letter]}\n"
        yield _entry(code)


def _entry(code: Code) -> str:
    lines = [f"\n### {code.code}: {code.title}\n", f"\n{code.summary}\n"]
    if code.code[0] in "DP":
        return "".join(lines)
    guard = _GUARD[code.decided_by]
    unsettled = "" if code.shows_in_runs else " A suspicion cannot be settled by running."
    lines.append(f"\nDecided by {guard}.{unsettled}\n")
    if code.code in RULES:
        _, _, text = help_page(code.code).partition("\n")
        lines.append(f"\n{text.strip()}\n")
    return "".join(lines)
