"""What reading suspects and no run can settle keeps a verify open."""

import pytest

from infrarsi.contract.catalogue import violation
from infrarsi.wire.results import VerifyResult
from infrarsi_runner.procedures.verify import with_suspicions

ACCEPTED = VerifyResult(verdict="accepted", violations=(), missing=())


def test_a_clock_that_may_be_read_too_early_is_never_accepted() -> None:
    suspicion = violation("T301", "The clock is read before the step.", severity="warning")
    answer = with_suspicions(ACCEPTED, (suspicion,))
    assert answer.verdict == "inconclusive"
    assert answer.missing == ("No run can settle T301: The clock is read before the step.",)
    assert answer.violations == (suspicion,)


def test_a_suspicion_that_runs_have_settled_only_stands_beside() -> None:
    suspicion = violation("L201", "The loss may be another.", severity="warning")
    answer = with_suspicions(ACCEPTED, (suspicion,))
    assert (answer.verdict, answer.violations) == ("accepted", (suspicion,))


@pytest.mark.parametrize("kind", ["rejected", "inconclusive"])
def test_other_verdicts_stay(kind: str) -> None:
    judged = ACCEPTED.model_copy(update={"verdict": kind, "missing": ("a",)})
    suspicion = violation("E504", "State may be kept.", severity="warning")
    answer = with_suspicions(judged, (suspicion,))
    assert (answer.verdict, answer.missing) == (kind, ("a",))
