"""Clause: rows, lengths, tokens, positions and hashes agree on every common step.

The counts are the processes' own: a difference rejects, agreement proves nothing by itself.
"""

from collections.abc import Sequence

from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.hints import workload_hint
from infrarsi.judge.verdict import Verdict
from infrarsi.wire.probe import StepRecord


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare the counters, summed over ranks."""
    steps = evidence.common_steps()
    if not steps:
        return answer("", missing=("Candidate and baseline have no recorded step in common.",))
    found = workload_hint(evidence)
    if found is None and any(_unseen(ours) and not _unseen(theirs) for ours, theirs in steps):
        return answer(
            "", missing=("The candidate's rows could not be seen, the baseline's could.",)
        )
    check = f"Rows, tokens and their hashes agree on {len(steps)} steps."
    return answer(check, (found,) if found else ())


def _unseen(side: Sequence[StepRecord]) -> bool:
    return any(step.inputs_hash is None for step in side)
