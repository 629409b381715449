import pytest
from judged import WIDTH, honest, rank, step

from infrarsi.judge.start_over import last_shared_step, start_over_step

LATE = 18


def ranks(seen, n_ranks=1):
    """Redone ranks with so many rows of each step seen before, from step 2 on."""
    steps = [step(2 + i, rows_seen=n) for i, n in enumerate(seen)]
    return tuple(rank(steps=steps, rank=r, world_size=n_ranks) for r in range(n_ranks))


@pytest.mark.parametrize(
    ("seen", "end"),
    [
        ([0, 0, 0, WIDTH, WIDTH], 5),
        ([0, 0, 0, 2, WIDTH, WIDTH], 5),
        ([0, 0, 0, 6, WIDTH], 5),
        ([0, 0, 0, 0], None),
        ([], None),
        ([0, 1, 1, 2, 3, 4, 5], None),
        ([0, 0, 3, 0, 0, 0], None),
        ([0, None, None, WIDTH], None),
    ],
)
def test_data_start_over_where_rows_come_back_in_bulk(seen, end):
    assert start_over_step(ranks(seen)) == end


def test_shuffled_ranks_see_a_part_of_their_own_rows_again():
    assert start_over_step(ranks([0, 0, 3, 4], n_ranks=2)) == 4
    assert start_over_step(()) is None


def at(index, micro_steps, end=12, late=100, **changes):
    """A step whose rows are the same on both sides until the end, and `late` higher from it on."""
    shift = late if index >= end else 0
    fields = {"inputs_hash": f"{1000 + shift + index:x}", **changes}
    return step(index, micro_steps=micro_steps, **fields)


def differing(candidate=None, baseline=None):
    """A regrouped candidate that has other rows from step 12 on, where the baseline starts over."""
    ours = candidate or [at(i, 1) for i in range(2, 24)]
    theirs = baseline or [
        at(i, 4, late=200, rows_seen=WIDTH if i >= 12 else 0) for i in range(2, LATE + 1)
    ]
    return honest(candidate=(rank(steps=ours),), baseline=(rank(steps=theirs),))


def test_a_regrouped_run_is_explained_up_to_two_steps_before_the_end():
    assert last_shared_step(differing(), LATE) == 10


def test_a_step_before_the_end_is_not_explained():
    assert last_shared_step(differing(), 11) is None


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([at(i, 4) for i in range(2, 24)], id="not regrouped"),
        pytest.param([at(i, 4 if i == 7 else 1) for i in range(2, 24)], id="regrouped at times"),
        pytest.param([at(i, 1, end=9) for i in range(2, 24)], id="other rows before the end"),
        pytest.param([at(i, 1, late=200) for i in range(2, 24)], id="the same rows after it"),
        pytest.param([at(i, 1) for i in range(2, 24) if i != 6], id="a step left out"),
        pytest.param([at(i, 1) for i in range(2, LATE)], id="the late step left out"),
        pytest.param(
            [at(i, 1, **({"rows": WIDTH // 2} if i >= 12 else {})) for i in range(2, 24)],
            id="fewer rows after it",
        ),
        pytest.param(
            [at(i, 1, **({"inputs_hash": None} if i == 5 else {})) for i in range(2, 24)],
            id="unseen rows before it",
        ),
        pytest.param(
            [at(i, 1, **({"inputs_hash": None} if i == LATE else {})) for i in range(2, 24)],
            id="unseen rows at the late step",
        ),
        pytest.param(
            [at(i, 1, learning_rates=(2e-3 if i >= 12 else 1e-3,)) for i in range(2, 24)],
            id="another rate after it",
        ),
    ],
)
def test_what_else_differs_is_not_explained(steps):
    assert last_shared_step(differing(candidate=steps), LATE) is None


def test_nothing_is_explained_where_the_baseline_never_starts_over():
    theirs = [at(i, 4, late=200, rows_seen=0) for i in range(2, LATE + 1)]
    assert last_shared_step(differing(baseline=theirs), LATE) is None
