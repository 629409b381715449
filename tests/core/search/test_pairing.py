import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.search.beliefs import Facts, fit_beliefs
from infrarsi.search.outcomes import read_outcome
from infrarsi.search.pairing import paired
from infrarsi.search.space import read_space

SAVERS = {"cheap": (0.01, -12.0), "middling": (0.06, -12.0), "dear": (0.3, -12.0)}
KNOBS = {
    "micro_batch_size": {"type": "ordinal", "choices": [1, 2, 4], "default": 1},
    **{name: {"type": "bool", "kind": "patch"} for name in SAVERS},
}
SPACE = read_space({"knobs": KNOBS}, None)
FACTS = Facts(capacity_gib=64.0)


def trial(**setting):
    """Doubling the micro-batch saves 15 % of time and needs 30 GiB; each saver has its price."""
    full = SPACE.complete(setting)
    doublings = np.log2(full["micro_batch_size"])
    time = np.exp(-0.15 * doublings + sum(t for n, (t, _) in SAVERS.items() if full[n]))
    peak = 50 + 30 * doublings + sum(m for n, (_, m) in SAVERS.items() if full[n])
    if peak > 64:
        return read_outcome(full, {"status": "oom", "mem_at_least_gib": 64.0})
    return read_outcome(full, {"status": "ok", "step_time_s": time, "peak_mem_gib": peak})


def beliefs(*trials, facts=FACTS):
    return fit_beliefs(SPACE.encoding, trials, facts)


def learned():
    return beliefs(trial(), trial(micro_batch_size=2), *(trial(**{n: True}) for n in SAVERS))


def made_from(row, known):
    moves = SPACE.allowed(SPACE.changed_rows(row[None, :]))
    return [SPACE.setting(r) for r in paired(row, moves, known)]


def gain_known():
    """A micro-batch of two ran out of memory, and its step time is known all the same."""
    fast = read_outcome(
        SPACE.complete({"micro_batch_size": 2}), {"status": "nan", "step_time_s": 0.86}
    )
    return beliefs(trial(), trial(micro_batch_size=2), fast, *(trial(**{n: True}) for n in SAVERS))


def test_a_hungry_move_is_joined_by_the_cheapest_saver_first_then_by_more():
    made = made_from(SPACE.start, gain_known())
    two = [s for s in made if s["micro_batch_size"] == 2]
    joined = [tuple(n for n in SAVERS if s[n]) for s in two]
    assert joined[0] == ("cheap",)
    assert joined[1] == ("cheap", "middling")
    assert joined[2] == ("cheap", "middling", "dear")


def test_every_pair_changes_the_hungry_knob_and_at_least_one_saver():
    made = made_from(SPACE.start, gain_known())
    assert made
    assert all(s["micro_batch_size"] > 1 and any(s[n] for n in SAVERS) for s in made)


def test_what_fits_anyway_is_left_as_a_single_move():
    small = beliefs(trial(), *(trial(**{n: True}) for n in SAVERS), facts=Facts(capacity_gib=640.0))
    assert made_from(SPACE.start, small) == []


def test_what_promises_no_time_is_not_made_to_fit():
    slow = read_outcome(
        SPACE.complete({"micro_batch_size": 2}), {"status": "nan", "step_time_s": 1.3}
    )
    slower = read_outcome(
        SPACE.complete({"micro_batch_size": 4}), {"status": "nan", "step_time_s": 1.7}
    )
    known = beliefs(
        trial(), trial(micro_batch_size=2), slow, slower, *(trial(**{n: True}) for n in SAVERS)
    )
    assert made_from(SPACE.start, known) == []


def test_savers_that_are_on_already_are_not_put_on_again():
    (row,) = SPACE.encoding.rows([{"cheap": True}])
    made = made_from(row, gain_known())
    assert made
    assert all(s["cheap"] for s in made)


@pytest.mark.parametrize(
    ("trials", "facts"),
    [
        ((), FACTS),
        ((read_outcome(SPACE.complete({}), {"status": "ok", "step_time_s": 1.0}),), FACTS),
        ((trial(),), Facts()),
    ],
)
def test_without_models_of_both_and_a_limit_nothing_is_paired(trials, facts):
    assert made_from(SPACE.start, beliefs(*trials, facts=facts)) == []


def test_no_moves_give_no_pairs():
    rows = SPACE.encoding.rows([{}])
    assert paired(rows[0], rows[:0], learned()).shape == (0, len(SPACE.knobs))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, len(SPACE.all_rows()) - 1))
def test_pairs_from_anywhere_are_settings_of_the_space_that_differ_in_two_knobs_or_more(i):
    row = SPACE.all_rows()[i]
    moves = SPACE.changed_rows(row[None, :])
    made = paired(row, moves, gain_known())
    assert ((made != row).sum(axis=1) >= 2).all()
    assert (made >= 0).all()
    assert (made < [len(k.choices) for k in SPACE.knobs]).all()
