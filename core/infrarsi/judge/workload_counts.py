"""Clause: rows, lengths, tokens, positions and hashes agree on every common step.

The counts are the processes' own: a difference rejects, agreement proves nothing by itself.
"""

from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.hints import workload_hint
from infrarsi.judge.verdict import Verdict


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the counters, summed over ranks."""
    steps = evidence.common_steps()
    if not steps:
        return answer("", missing=("Candidate and baseline have no recorded step in common.",))
    found = workload_hint(evidence)
    check = f"Rows, tokens and their hashes agree on {len(steps)} steps."
    return answer(check, (found,) if found else ())
