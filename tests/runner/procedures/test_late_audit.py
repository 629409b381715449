import random

import pytest

from infrarsi_runner.procedures.late_audit import draw_step


@pytest.mark.parametrize(("first", "last"), [(48, 118), (48, 48), (20, 22), (30, 4000)])
def test_the_second_step_is_late_before_the_end_and_in_the_last_quarter_of_its_run(
    first: int, last: int
) -> None:
    for seed in range(200):
        step, n_steps = draw_step(random.Random(seed), first, last)
        assert max(first, 7 * last // 8) <= step <= last
        assert 3 * n_steps // 4 <= step < n_steps - 2
