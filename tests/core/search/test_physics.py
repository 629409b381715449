import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.estimate import estimate_job
from infrarsi.search import Searcher
from infrarsi.search.physics import job_physics
from infrarsi.search.space import read_space

JOB = {
    "hardware": "H100-SXM-80GB", "n_gpus": 8, "n_layers": 32, "d_model": 4096, "n_heads": 32,
    "n_kv_heads": 8, "d_ffn": 14336, "vocab_size": 128256, "seq_len": 4096,
    "global_batch_seqs": 64, "precision_class": "bf16", "zero_stage": 3,
}  # fmt: skip
SHORT = {
    "hardware": "H100-SXM-80GB", "gpus": 8, "layers": 32, "d_model": 4096, "heads": 32,
    "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq": 4096, "global_batch": 64,
    "precision_class": "bf16", "zero_stage": 3,
}  # fmt: skip
KNOBS = {
    "micro_batch_size": {"type": "ordinal", "choices": [1, 2, 4, 8], "default": 1},
    "tp": {"type": "ordinal", "choices": [1, 2, 4, 8], "kind": "parallelism"},
    "recompute": {"choices": ["full", "selective", "none"], "default": "full"},
    "pin_memory": {"type": "bool", "default": False},
    "fast_loss": {"type": "bool", "kind": "patch"},
}
SPACE = read_space({"knobs": KNOBS}, None)
ROWS = SPACE.all_rows()


@pytest.fixture(scope="module")
def known():
    found = job_physics(SPACE.encoding, JOB)
    assert found is not None
    return found


def total(values):
    return values.sum(axis=1)


def rows(*changes):
    return SPACE.encoding.rows([SPACE.complete(c) for c in changes])


def test_the_components_of_a_setting_add_up_to_what_estimate_says_of_it(known):
    told = {**JOB, "micro_batch_seqs": 2, "tp": 2, "act_ckpt_class": "none"}
    row = rows({"micro_batch_size": 2, "tp": 2, "recompute": "none"})
    answer = estimate_job(told)
    assert total(known.time_s(row))[0] == pytest.approx(answer.step_time_s.value)
    assert total(known.memory_gib(row))[0] == pytest.approx(answer.peak_mem_gib.value)


def test_what_no_knob_sets_is_assumed_as_estimate_assumes_it():
    space = read_space({"knobs": {"micro_batch_size": {"choices": [1, 8]}}}, None)
    known = job_physics(space.encoding, JOB)
    assert known is not None
    expected = [estimate_job({**JOB, "micro_batch_seqs": n}).step_time_s.value for n in (1, 8)]
    assert total(known.time_s(space.all_rows())) == pytest.approx(expected)


def test_every_component_is_finite_and_none_is_negative(known):
    for values in (known.time_s(ROWS), known.memory_gib(ROWS)):
        assert len(values) == len(ROWS)
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (total(values) > 0).all()


def test_knobs_without_a_role_change_nothing(known):
    made = rows({}, {"pin_memory": True}, {"fast_loss": True})
    for values in (known.time_s(made), known.memory_gib(made)):
        assert (values == values[0]).all()


def test_recomputation_costs_time_and_saves_memory(known):
    made = rows({"recompute": "full"}, {"recompute": "none"})
    assert total(known.time_s(made))[0] > total(known.time_s(made))[1]
    assert total(known.memory_gib(made))[0] < total(known.memory_gib(made))[1]


def test_a_larger_micro_batch_never_needs_less_memory(known):
    for recompute in KNOBS["recompute"]["choices"]:
        made = rows(*({"micro_batch_size": m, "recompute": recompute} for m in (1, 2, 4, 8)))
        assert (np.diff(total(known.memory_gib(made))) >= 0).all()


def test_short_names_of_facts_mean_the_same(known):
    short = job_physics(SPACE.encoding, SHORT)
    assert short is not None
    assert (short.time_s(ROWS) == known.time_s(ROWS)).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, len(ROWS) - 1), max_size=12))
def test_rows_are_answered_in_their_order_whatever_was_asked_before(known, picked):
    asked = ROWS[np.asarray(picked, dtype=np.int64)]
    alone = job_physics(SPACE.encoding, JOB)
    assert alone is not None
    together = known.time_s(asked)
    assert len(together) == len(picked)
    for i in range(len(picked)):
        assert (alone.time_s(asked[i : i + 1])[0] == together[i]).all()


@pytest.mark.parametrize(
    "job",
    [
        None,
        {},
        {"capacity_gib": 80.0, "noise_frac": 0.01},
        {k: v for k, v in JOB.items() if k != "hardware"},
        {"hardware": "H100-SXM-80GB", "n_gpus": 8},
        {**JOB, "hardware": "no such device"},
    ],
)
def test_a_job_of_which_too_little_is_known_has_no_physics(job):
    assert job_physics(SPACE.encoding, job) is None


def test_a_space_without_a_knob_that_is_known_has_no_physics():
    space = read_space({"knobs": {"pin_memory": KNOBS["pin_memory"]}}, None)
    assert job_physics(space.encoding, JOB) is None


def test_with_physics_the_search_predicts_before_any_trial_and_can_be_told_not_to():
    with_it = Searcher({"knobs": KNOBS}, job=JOB)
    without = Searcher({"knobs": KNOBS}, job=JOB, without=("physics",))
    settings_ = [{"recompute": "full"}, {"recompute": "none"}]
    full, none = (p["step_time_s"]["value"] for p in with_it.predict(settings_))
    assert full > none
    assert [p["step_time_s"] for p in without.predict(settings_)] == [None, None]
