import random

import pytest
from judged import audit, honest, tensor

from infrarsi.judge.judging import judge
from infrarsi_runner.procedures.late_audit import draw_step, left_open


@pytest.mark.parametrize(("first", "last"), [(48, 118), (48, 48), (20, 22), (30, 4000)])
def test_the_second_step_is_late_before_the_end_and_in_the_last_quarter_of_its_run(
    first: int, last: int
) -> None:
    for seed in range(200):
        step, n_steps = draw_step(random.Random(seed), first, last)
        assert max(first, 7 * last // 8) <= step <= last
        assert 3 * n_steps // 4 <= step < n_steps - 2


def test_where_no_step_before_the_end_is_left_the_verdict_stays_open() -> None:
    late = audit(tensor(grad_error=0.4), step=90)
    assert judge(honest(audits=(audit(), late))).kind == "rejected"
    verdict = judge(honest(audits=(audit(), *left_open([late], 40))))
    assert verdict.kind == "inconclusive"
    assert "start over soon after step 40" in verdict.missing[0]
