"""The judge: every clause on the evidence, one verdict."""

from collections.abc import Callable

from infrarsi.contract.violation import Violation
from infrarsi.judge import (
    baseline_learns,
    devices,
    dropout,
    endurance,
    finite,
    locked_files,
    outside_cpu,
    physics,
    precision,
    tampering,
    trajectory,
    update_audit,
    workload_counts,
)
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict, combine

CLAUSES: tuple[Callable[[JudgedEvidence], Verdict], ...] = (
    locked_files.clause,
    tampering.clause,
    devices.clause,
    precision.clause,
    workload_counts.clause,
    finite.clause,
    update_audit.clause,
    dropout.clause,
    baseline_learns.clause,
    trajectory.clause,
    outside_cpu.clause,
    physics.clause,
    endurance.clause,
)
"""In the order in which their findings are reported."""


def judge(evidence: JudgedEvidence) -> Verdict:
    """Combine all clauses: one breach rejects, one gap leaves it open, never the reverse.

    Of several violations with the same code the first is kept.
    """
    verdict = combine(tuple(clause(evidence) for clause in CLAUSES))
    first: dict[str, Violation] = {}
    for violation in verdict.violations:
        first.setdefault(violation.code, violation)
    return verdict.model_copy(update={"violations": tuple(first.values())})
