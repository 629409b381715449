"""Clause: the probe found its hooks and clocks as it left them, and imports from the worktree.

What the probe could not observe leaves the verdict open; what it found changed rejects.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict

_CLOCK_WORDS = ("clock", "time.", "perf_counter", "monotonic", "synchronize", "elapsed_time")


def clause(evidence: JudgedEvidence) -> Verdict:
    """Collect what every rank of the candidate reported."""
    found = dict.fromkeys(text for rank in evidence.candidate for text in rank.tampering)
    outside = dict.fromkeys(text for rank in evidence.candidate for text in rank.outside_imports)
    unseen = dict.fromkeys(text for rank in evidence.candidate for text in rank.unsupported)
    violations = [_name(text) for text in found]
    violations += [
        violation("S413", f"A module was imported from outside the candidate: {text}.")
        for text in outside
    ]
    missing = tuple(f"The probe cannot observe this job fully: {text}." for text in unseen)
    return answer("Hooks, clocks and imports are untouched.", tuple(violations), missing)


def _name(text: str) -> Violation:
    if any(word in text for word in _CLOCK_WORDS):
        return violation("T305", f"A clock was replaced: {text}.")
    return violation("S406", f"The probe was interfered with: {text}.")
