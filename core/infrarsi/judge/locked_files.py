"""Clause: the files the contract locks are on disk as they were locked, before and after."""

from infrarsi.contract.catalogue import violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the hashes taken around the candidate's runs with the lock's."""
    locked = evidence.lock.locked_files
    if evidence.locked_before is None or evidence.locked_after is None:
        gap = ("The locked files were not hashed around the run.",)
        return answer("", missing=gap if "locked_files" in evidence.needs else ())
    changed = [
        file
        for file, digest in sorted(locked.items())
        if not evidence.locked_before.get(file) == digest == evidence.locked_after.get(file)
    ]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    message = f"Locked and yet changed or removed: {', '.join(changed[:3])}{more}."
    violations = (violation("S401", message),) if changed else ()
    return answer(f"{len(locked)} locked files are unchanged.", violations)
