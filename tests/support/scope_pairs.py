"""Edits of the small trainers for the scope rules, and the text each finding is put under."""

from collections.abc import Mapping

from rule_pairs import CONSTANTS, ONE, edited, found_in

from infrarsi.contract import Violation
from infrarsi.reading.syntax import SourceFile

LOOP = "    for step in range(STEPS):\n"
MAIN = "def main():\n"
MODEL = "    model = Net()\n"
MICRO = "        for micro in range(ACCUM):\n"
BACKWARD = "            loss.backward()\n"
_IMPORTS = "import torch\nimport torch.nn as nn\n"

Edit = tuple[str, str]


def importing(line: str) -> Edit:
    """Import something more."""
    return _IMPORTS, f"{line}\n{_IMPORTS}"


def before(spot: str, text: str) -> Edit:
    """Add whole lines in front of a place."""
    return spot, f"{text}\n{spot}"


def halved_where(condition: str) -> Edit:
    """Take half the micro-batches where a condition holds."""
    return MICRO, f"        for micro in range(ACCUM // 2 if {condition} else ACCUM):\n"


def marked(
    code: str,
    *edits: Edit,
    text: str = CONSTANTS,
    launch: str = ONE,
    files: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """(severity, text it stands under) of each finding of a code in train.py."""
    after, _ = edited(text, *edits)
    source = SourceFile("train.py", after)
    return [
        (v.severity, source.written(v.place))
        for v in found_in(text, after, launch, after_files=files)
        if v.code == code and v.place is not None and v.place.file == "train.py"
    ]


def scope_findings(
    *edits: Edit,
    text: str = CONSTANTS,
    launch: str = ONE,
    files: Mapping[str, str] | None = None,
    after_files: Mapping[str, str] | None = None,
) -> list[Violation]:
    """All findings of the family after some edits."""
    after, _ = edited(text, *edits)
    found = found_in(text, after, launch, files=files, after_files=after_files)
    return [v for v in found if v.code.startswith("S")]
