"""What the judge makes of a job that drops out."""

import pytest
from judged import audit, honest, rank, step

from infrarsi.judge.dropout import clause
from infrarsi.judge.trajectory import clause as trajectory


def dropping(**changes):
    fields = {
        "n_dropouts": 8,
        "dropout_noise_candidate": 0.30,
        "dropout_noise_baseline": 0.29,
        "dropped_candidate": 1000.0,
        "dropped_baseline": 1000.0,
    }
    return honest(audits=(audit(**{**fields, **changes}),))


def test_as_much_dropout_is_accepted():
    assert clause(dropping()).kind == "accepted"
    assert clause(honest()).kind == "accepted"


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout_noise_candidate": 0.01},
        {"dropout_noise_candidate": 0.5},
        {"dropped_candidate": 500.0},
        {"dropped_candidate": 0.0},
    ],
)
def test_another_dropout_is_rejected(changes):
    assert [v.code for v in clause(dropping(**changes)).violations] == ["L206"]


def test_what_was_not_measured_is_left_open():
    assert clause(dropping(dropout_noise_candidate=None)).kind == "inconclusive"


def leaning(by, scatter=0.0):
    steps = [step(i) for i in range(12)]
    moved = []
    for s in steps:
        factor = 1 + by + (scatter if s.index % 2 else -scatter)
        moved.append(s.model_copy(update={"losses": tuple(x * factor for x in s.losses)}))
    return (rank(steps=moved),)


def test_losses_under_other_masks_may_scatter_but_not_lean():
    scattered = honest(candidate=leaning(0.002, 0.01), n_dropouts=8)
    assert trajectory(scattered).kind == "accepted"
    assert trajectory(scattered.model_copy(update={"n_dropouts": 0})).kind == "rejected"
    assert trajectory(honest(candidate=leaning(0.04), n_dropouts=8)).kind == "rejected"
