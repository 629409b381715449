"""A clause's answer: breaches, what is missing, or a plain yes."""

from infrarsi.contract.violation import Violation
from infrarsi.judge.verdict import Verdict


def answer(
    check: str, violations: tuple[Violation, ...] = (), missing: tuple[str, ...] = ()
) -> Verdict:
    """The clause's verdict: breaches reject, gaps leave it open, else it is accepted.

    Args:
        check: one sentence on what was checked, empty where nothing was; kept only where the
            clause accepts.
        violations: the breaches found.
        missing: what kept the clause from deciding, one sentence each.
    """
    if violations:
        return Verdict(kind="rejected", violations=violations, missing=missing)
    if missing:
        return Verdict(kind="inconclusive", missing=missing)
    return Verdict(kind="accepted", checks=(check,) if check else ())
