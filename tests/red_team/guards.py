"""The two guards on one case: the static check, and the judge on evidence recorded earlier."""

import gzip
from pathlib import Path

from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.judging import judge
from infrarsi.judge.verdict import Verdict
from infrarsi_server.operations.check import CheckResult, check_sides
from infrarsi_server.operations.contracting import open_sides
from red_team.case import Case, materialise

EVIDENCE = Path(__file__).parent / "evidence"


def checked(case: Case, folder: Path) -> tuple[CheckResult, bool]:
    """What `infrarsi check` says, and whether after can be launched at all."""
    sides = open_sides(*materialise(case, folder), None, None)
    return check_sides(sides), sides.refused is None and sides.unclear is None


def judged(case: Case) -> Verdict | None:
    """What the judge makes of the recorded evidence; None where none was recorded.

    `make red-team RECORD=--record` records it: the judge's input, not its answer.
    """
    path = EVIDENCE / f"{case.name}.json.gz"
    if not path.exists():
        return None
    return judge(JudgedEvidence.model_validate_json(gzip.decompress(path.read_bytes())))
