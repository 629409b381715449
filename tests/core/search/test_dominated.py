import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.search import Searcher
from infrarsi.search.claims import read_claims
from infrarsi.search.dominated import is_dominated
from infrarsi.search.outcomes import read_outcome
from infrarsi.search.space import read_space

KNOBS = {
    "micro_batch_size": {"type": "ordinal", "choices": [4, 1, 2, 8], "default": 1},
    "width": {"type": "ordinal", "choices": [1, 2, 4], "default": 1},
    "chunked": {"type": "bool", "kind": "patch"},
    "greedy": {"type": "bool", "kind": "patch"},
    "silent": {"type": "bool", "kind": "patch"},
    "saver_switch": {"type": "bool", "default": False},
}
CLAIMS = (
    {"knob": "chunked", "value": True, "memory_role": "saver"},
    {"knob": "greedy", "value": True, "memory_role": "hungry"},
    {"knob": "silent", "value": True, "log_speedup": 0.1},
    {"knob": "saver_switch", "value": True, "memory_role": "saver"},
)
SPACE = read_space({"knobs": KNOBS}, None)
READ = read_claims(CLAIMS, SPACE)
SETTINGS = st.fixed_dictionaries({k.name: st.sampled_from(list(k.choices)) for k in SPACE.knobs})


def told(setting, status="oom"):
    return read_outcome(SPACE.complete(setting), {"status": status})


def dominated(setting, *trials, claims=READ):
    rows = SPACE.encoding.rows([SPACE.complete(setting)])
    return bool(is_dominated(SPACE, rows, trials, claims)[0])


FAILED = {"micro_batch_size": 4, "chunked": True}


@pytest.mark.parametrize(
    "worse",
    [
        {"micro_batch_size": 8, "chunked": True},
        {"micro_batch_size": 4, "chunked": False},
        {"micro_batch_size": 4, "chunked": True, "greedy": True},
        {"micro_batch_size": 8, "chunked": False, "greedy": True},
    ],
)
def test_what_needs_more_than_a_failure_is_sure_to_fail(worse):
    assert dominated(worse, told(FAILED))


@pytest.mark.parametrize(
    "other",
    [
        {"micro_batch_size": 2, "chunked": True},
        {"micro_batch_size": 8, "chunked": True, "width": 2},
        {"micro_batch_size": 8, "chunked": True, "silent": True},
        {"micro_batch_size": 8, "chunked": True, "saver_switch": True},
        {"micro_batch_size": 1},
    ],
)
def test_what_needs_less_or_differs_in_what_is_not_known_may_be_tried(other):
    assert not dominated(other, told(FAILED))


@pytest.mark.parametrize("status", ["ok", "crashed", "rejected", "nan", "timeout", "compile_error"])
def test_only_running_out_of_memory_rules_others_out(status):
    assert not dominated({"micro_batch_size": 8, "chunked": True}, told(FAILED, status))


def test_a_settings_claim_rules_nothing_out_since_a_setting_is_no_patch():
    assert not dominated({"saver_switch": False}, told({"saver_switch": True}))


def test_without_claims_only_the_micro_batch_rules_out():
    assert dominated({"micro_batch_size": 8, "chunked": True}, told(FAILED), claims=())
    assert not dominated({"micro_batch_size": 8}, told(FAILED), claims=())


def test_no_rows_and_no_failures_are_answered():
    rows = SPACE.all_rows()
    assert not is_dominated(SPACE, rows, [], READ).any()
    assert is_dominated(SPACE, rows[:0], [told(FAILED)], READ).shape == (0,)


def test_needing_more_is_an_order_over_all_settings():
    rows = SPACE.all_rows()
    rules_out = np.asarray(
        [is_dominated(SPACE, rows, [told(SPACE.setting(r))], READ) for r in rows], dtype=np.int64
    )
    assert 1000 < rules_out.sum() < rules_out.size / 4
    assert (np.diag(rules_out) == 1).all()
    assert (((rules_out @ rules_out) > 0) == (rules_out > 0)).all()
    assert ((rules_out * rules_out.T) == np.eye(len(rows))).all()


@settings(max_examples=60, deadline=None)
@given(SETTINGS, st.lists(SETTINGS, max_size=4))
def test_more_failures_never_allow_what_fewer_ruled_out(setting, failures):
    trials = [told(f) for f in failures]
    for n in range(len(trials)):
        if dominated(setting, *trials[:n]):
            assert dominated(setting, *trials)


def test_the_search_never_asks_for_what_is_sure_to_fail():
    searcher = Searcher({"knobs": {k: KNOBS[k] for k in ("micro_batch_size", "silent")}})
    searcher.tell({}, {"status": "ok", "step_time_s": 1.0, "peak_mem_gib": 10.0})
    searcher.tell({"micro_batch_size": 2}, {"status": "oom"})
    asked = []
    while not searcher.exhausted():
        asked.append(searcher.ask())
        searcher.tell(asked[-1], {"status": "ok", "step_time_s": 1.0, "peak_mem_gib": 10.0})
    assert all(s["silent"] for s in asked)
    assert {s["micro_batch_size"] for s in asked} == {1, 2, 4, 8}


def test_rows_are_judged_as_they_run_not_as_they_are_written():
    described = {
        "micro_batch_size": KNOBS["micro_batch_size"],
        "tp": {"choices": [1, 2], "kind": "parallelism"},
        "tp_comm_overlap": {"type": "bool", "default": False},
    }
    space = read_space({"knobs": described}, None)
    failed = read_outcome(
        space.complete({"micro_batch_size": 2, "tp_comm_overlap": True}), {"status": "oom"}
    )
    rows = space.encoding.rows([{"micro_batch_size": 4}, {"micro_batch_size": 4, "tp": 2}])
    assert np.array_equal(is_dominated(space, rows, [failed], ()), [True, False])
