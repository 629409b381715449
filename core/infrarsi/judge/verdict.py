"""Verdict: the judge's answer on evidence."""

from typing import Literal

from infrarsi.contract.violation import Violation
from infrarsi.frozen import Frozen


class Verdict(Frozen):
    """`inconclusive` says in `missing` what kept the judge from deciding; it is never accepted."""

    kind: Literal["accepted", "rejected", "inconclusive"]
    violations: tuple[Violation, ...] = ()
    missing: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()


def combine(verdicts: tuple[Verdict, ...]) -> Verdict:
    """All clauses together: one rejection rejects, one gap leaves it inconclusive."""
    violations = tuple(v for verdict in verdicts for v in verdict.violations)
    missing = tuple(m for verdict in verdicts for m in verdict.missing)
    checks = tuple(c for verdict in verdicts for c in verdict.checks)
    errors = [v for v in violations if v.severity == "error"]
    rejected = bool(errors) or any(verdict.kind == "rejected" for verdict in verdicts)
    kind = "rejected" if rejected else "inconclusive" if missing else "accepted"
    return Verdict(kind=kind, violations=violations, missing=missing, checks=checks)
