import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.errors import UsageError
from infrarsi.search import Searcher
from infrarsi.search.space import read_space

DEGREE = {"type": "ordinal", "choices": [1, 2, 4], "kind": "parallelism", "default": 1}
SWITCH = {"type": "bool", "default": False}
OK = {"status": "ok", "step_time_s": 1.0}


def conditions(**knobs):
    return {k.name: k.acts_when for k in read_space({"knobs": knobs}, None).knobs}


@pytest.mark.parametrize(
    ("degree", "switch"),
    [
        ("tensor_parallel_size", "tp_comm_overlap"),
        ("tensor_model_parallel_size", "sequence_parallel"),
        ("pipeline_parallel_size", "interleaved_schedule"),
        ("pp", "virtual_pipeline_stages"),
        ("context_parallel_size", "cp_comm_type"),
        ("expert_parallel_size", "all_to_all_overlap"),
    ],
)
def test_a_switch_named_after_a_degree_acts_only_where_that_is_above_one(degree, switch):
    found = conditions(**{degree: DEGREE, switch: SWITCH})
    assert found == {degree: (), switch: ((degree, (2, 4)),)}


@pytest.mark.parametrize("switch", ["compile", "overlap_grad_reduce", "stop_on_error", "deep_copy"])
def test_a_switch_that_names_no_degree_always_acts(switch):
    assert conditions(tp=DEGREE, pp=DEGREE, **{switch: SWITCH})[switch] == ()


def test_a_degree_never_depends_on_another_and_without_one_nothing_is_inferred():
    found = conditions(tp=DEGREE, expert_tensor_parallel_size=DEGREE, pp=DEGREE)
    assert set(found.values()) == {()}
    assert conditions(tp_comm_overlap=SWITCH)["tp_comm_overlap"] == ()


def test_beside_a_degree_that_is_always_above_one_the_switch_always_acts():
    always = {**DEGREE, "choices": [2, 4], "default": 2}
    assert conditions(tp=always, tp_comm_overlap=SWITCH)["tp_comm_overlap"] == ()


def test_an_ordered_knob_without_a_role_is_left_alone():
    buckets = {"type": "ordinal", "choices": [1, 2, 4, 8], "default": 1}
    assert conditions(tp=DEGREE, tp_buckets=buckets)["tp_buckets"] == ()


def test_what_the_space_says_wins_over_the_name():
    told = {**SWITCH, "acts_when": {"compile": [True]}}
    found = conditions(tp=DEGREE, compile=SWITCH, tp_comm_overlap=told)
    assert found["tp_comm_overlap"] == (("compile", (True,)),)


def test_one_value_may_stand_for_a_list_of_one():
    told = {**SWITCH, "acts_when": {"mode": "b"}}
    found = conditions(mode={"choices": ["a", "b"]}, extra=told)
    assert found["extra"] == (("mode", ("b",)),)


@pytest.mark.parametrize(
    "told", ["tp", 2, ["tp"], {"tp": [3]}, {"gone": [1]}, {"extra": [True]}, {"tp": [1, 3]}]
)
def test_a_condition_that_cannot_be_is_refused_with_the_knob(told):
    with pytest.raises(UsageError, match="extra's acts_when"):
        conditions(tp=DEGREE, extra={**SWITCH, "acts_when": told})


def test_degrees_and_knobs_with_a_role_are_structural_and_switches_and_patches_are_not():
    described = {
        "tp": DEGREE,
        "micro_batch_size": {"type": "ordinal", "choices": [1, 2, 4]},
        "recompute": {"choices": ["none", "full"]},
        "nodes": {**DEGREE},
        "pin_memory": SWITCH,
        "bf16": {**SWITCH, "kind": "patch"},
    }
    structural = [k.name for k in read_space({"knobs": described}, None).knobs if k.is_structural]
    assert structural == ["tp", "micro_batch_size", "recompute", "nodes"]


def test_no_trial_is_spent_on_a_switch_that_does_not_act():
    searcher = Searcher({"knobs": {"tp": DEGREE, "tp_comm_overlap": SWITCH}})
    asked = []
    while not searcher.exhausted():
        asked.append(searcher.ask())
        searcher.tell(asked[-1], OK)
    assert len(asked) == 5
    assert {"tp": 1, "tp_comm_overlap": True} not in asked


def test_a_trial_of_a_switch_that_does_not_act_counts_as_one_of_it_off():
    searcher = Searcher({"knobs": {"tp": DEGREE, "tp_comm_overlap": SWITCH}})
    searcher.tell({"tp": 1, "tp_comm_overlap": True}, OK)
    assert searcher.ask() != {"tp": 1, "tp_comm_overlap": False}


@settings(max_examples=40, deadline=None)
@given(st.permutations(["tp", "pp", "tp_comm_overlap", "sequence_parallel", "interleaved"]))
def test_the_order_of_knobs_changes_neither_conditions_nor_how_many_settings_differ(names):
    described = {n: DEGREE if n in ("tp", "pp") else SWITCH for n in names}
    assert conditions(**described) == {
        "tp": (),
        "pp": (),
        "tp_comm_overlap": (("tp", (2, 4)),),
        "sequence_parallel": (("tp", (2, 4)),),
        "interleaved": (("pp", (2, 4)),),
    }
    space = read_space({"knobs": described}, None)
    rows = space.all_rows()
    assert (space.encoding.canonical(rows) == rows).all()
    assert len(rows) == (1 + 2 * 4) * (1 + 2 * 2)
