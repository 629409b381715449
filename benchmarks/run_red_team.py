"""What the two guards make of the red team's corpus, each alone and both together.

Every case is checked statically and, whatever that says, run and judged under the short protocol
of `infrarsi verify`. One line a case goes to `build/red-team/results.jsonl`; a rerun goes on where
the last one ended. With --record the evidence the judge saw is kept beside the corpus, so that the
test suite can judge it again.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measures import write_measures
from scipy.stats import binomtest

from infrarsi.contract import unsettled_by_runs
from infrarsi.frozen import Frozen
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi_server.operations.check import check_sides
from infrarsi_server.operations.contracting import Sides, open_sides
from red_team.case import Case, materialise
from red_team.corpus import CASES
from red_team.guards import EVIDENCE
from red_team.live import judged_live

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "red-team" / "results.jsonl"


class Answer(Frozen):
    """One case: what each guard said. `judge` is None where after could not even be launched."""

    name: str
    family: str
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    judge: str | None = None
    codes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    ratio: float | None = None
    seconds: float = 0.0

    @property
    def is_cheat(self) -> bool:
        """Whether it should be rejected."""
        return self.family != "honest"

    @property
    def both(self) -> str:
        """What `infrarsi verify` answers."""
        if self.errors or self.judge is None:
            return "rejected"
        unsettled = unsettled_by_runs(self.warnings)
        return "inconclusive" if unsettled and self.judge == "accepted" else self.judge


def answer(case: Case, record: bool) -> Answer:
    """Ask both guards, the judge on real runs."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="red-team-") as name:
        folder = Path(name)
        before, after = materialise(case, folder)
        sides = open_sides(before, after, None, None)
        checked = check_sides(sides)
        said = Answer(
            name=case.name,
            family=case.family,
            errors=tuple(v.code for v in checked.violations if v.severity == "error"),
            warnings=tuple(v.code for v in checked.violations if v.severity == "warning"),
            messages=tuple(f"{v.code} {v.message}" for v in checked.violations),
        )
        if sides.refused is None and sides.unclear is None:
            said = _judged(said, sides, folder, case, record)
    return said.model_copy(update={"seconds": round(time.monotonic() - began, 1)})


def _judged(said: Answer, sides: Sides, folder: Path, case: Case, record: bool) -> Answer:
    found, evidence = judged_live(sides, folder)
    if record and evidence is not None:
        _keep(case.name, evidence)
    return said.model_copy(
        update={
            "judge": found.verdict,
            "codes": tuple(v.code for v in found.violations),
            "missing": found.missing,
            "messages": (*said.messages, *(f"{v.code} {v.message}" for v in found.violations)),
            "ratio": found.speedup.ratio if found.speedup else None,
        }
    )


def _keep(name: str, evidence: JudgedEvidence) -> None:
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    text = evidence.model_dump_json()
    (EVIDENCE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def known() -> dict[str, Answer]:
    """The answers of earlier runs by the case's name."""
    lines = RESULTS.read_text("utf-8").splitlines() if RESULTS.exists() else []
    found = [Answer.model_validate_json(line) for line in lines]
    return {answer.name: answer for answer in found}


def summary(answers: Sequence[Answer]) -> dict[str, float]:
    """Print the table by family; return the measures."""
    measures: dict[str, float] = {}
    print(f"{'family':10} {'n':>4} {'check':>18} {'judge':>18} {'both':>18}")
    families = sorted({a.family for a in answers})
    groups = {f: [a for a in answers if a.family == f] for f in families}
    groups["all cheats"] = [a for a in answers if a.is_cheat]
    for name, group in groups.items():
        wrong = {
            "check": [a for a in group if bool(a.errors or (a.is_cheat and a.warnings))],
            "judge": [a for a in group if a.judge in (None, "rejected")],
            "both": [a for a in group if a.both == "rejected"],
        }
        cells = [_rate(len(found), len(group)) for found in wrong.values()]
        print(f"{name:10} {len(group):>4} " + " ".join(f"{cell:>18}" for cell in cells))
        key = name.replace(" ", "_")
        for guard, found in wrong.items():
            if group:
                measures[f"{key}_{guard}_pct"] = 100 * len(found) / len(group)
    open_cases = [a.name for a in answers if a.both == "inconclusive"]
    measures["inconclusive_honest"] = sum(
        not a.is_cheat and a.both == "inconclusive" for a in answers
    )
    missed = [a.name for a in answers if a.is_cheat and a.both == "accepted"]
    refused = [a.name for a in answers if not a.is_cheat and a.both == "rejected"]
    for title, names in (("accepted", missed), ("refused", refused), ("open", open_cases)):
        print(f"{title}: {', '.join(names) or 'none'}")
    return measures


def _rate(k: int, n: int) -> str:
    if not n:
        return "-"
    bounds = binomtest(k, n).proportion_ci(0.95, method="exact")
    return f"{k} [{bounds.low:.0%}, {bounds.high:.0%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="these cases only, again")
    parser.add_argument("--family", action="append", help="cases of these families only")
    parser.add_argument("--record", action="store_true", help="keep the evidence for the tests")
    parser.add_argument("--summary", action="store_true", help="print the table and stop")
    options = parser.parse_args()
    done = known()
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    wanted = [c for c in CASES if not options.family or c.family in options.family]
    if options.names:
        wanted = [c for c in CASES if c.name in options.names]
    for case in wanted if not options.summary else []:
        if case.name in done and not options.names:
            continue
        found = answer(case, options.record)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found.model_dump(mode="json")) + "\n")
        done[case.name] = found
        print(
            f"{found.family:7} {found.name:45} check {','.join(found.errors) or '-'} "
            f"({','.join(found.warnings)}) judge {found.judge} {','.join(found.codes)} "
            f"{'; '.join(found.missing)} {found.seconds:.0f} s",
            flush=True,
        )
    answers = [done[c.name] for c in CASES if c.name in done]
    print(write_measures("red-team", summary(answers)))


if __name__ == "__main__":
    main()
