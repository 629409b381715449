import pytest

from infrarsi.errors import UsageError
from infrarsi.models.encoding import EncodedKnob
from infrarsi.search import Searcher
from infrarsi.search.jsonl import serve
from infrarsi.search.physics import job_physics
from infrarsi.search.practice import common_practice
from infrarsi.search.roles import columns_of, find_roles
from infrarsi.search.space import read_space

OK = {"status": "ok", "step_time_s": 1.0, "peak_mem_gib": 1.0}
SWITCH = {"type": "bool", "default": False}
JOB = {
    "hardware": "H100-SXM-80GB",
    "n_gpus": 8,
    "n_layers": 32,
    "d_model": 4096,
    "seq_len": 4096,
    "global_batch_seqs": 64,
    "micro_batch_seqs": 1,
    "sharding": "fsdp",
}


def asked_of(space):
    searcher = Searcher({"knobs": space})
    asked = []
    while not searcher.exhausted() and len(asked) < 50:
        asked.append(tuple(searcher.ask().values()))
        searcher.tell(dict(zip(space, asked[-1], strict=True)), OK)
    return asked


def test_a_micro_batch_that_may_be_auto_is_searched():
    assert len(asked_of({"micro_batch": {"choices": ["auto", 1, 2], "default": 1}})) == 3


def test_choices_that_are_equal_are_refused():
    with pytest.raises(UsageError):
        Searcher({"knobs": {"a": {"choices": [1, True]}}})


def test_conditions_are_followed_through_a_chain_in_any_order():
    chain = {
        "a": {**SWITCH, "acts_when": {"b": [True]}},
        "b": {**SWITCH, "acts_when": {"c": [True]}},
        "c": SWITCH,
    }
    assert len(asked_of(chain)) == len(asked_of(dict(reversed(chain.items())))) == 4


def test_an_offload_knob_that_is_off_keeps_the_jobs_own_sharding():
    off = read_space({"knobs": {"offload_optimizer": SWITCH}}, None)
    plain = read_space({"knobs": {"micro_batch": {"choices": [1, 2]}}}, None)
    a, b = (job_physics(s.encoding, JOB).memory_gib(s.start[None, :]).sum() for s in (off, plain))
    assert a == pytest.approx(b)


@pytest.mark.parametrize(
    ("name", "value", "columns"),
    [
        ("sharding", "stage3-offload", {"zero_stage": 3}),
        ("sharding", "zero3_offload", {"zero_stage": 3}),
    ],
)
def test_a_stage_with_offload_is_still_that_stage(name, value, columns):
    k = EncodedKnob(name=name, choices=(value,))
    assert columns_of({name: value}, find_roles((k,))) == columns


@pytest.mark.parametrize(
    ("name", "faster", "role"),
    [
        ("optimizer_offload", False, "saver"),
        ("offload_optimizer", False, "saver"),
        ("fused_cross_entropy", True, "saver"),
        ("recompute_attention", False, "saver"),
        ("cuda_graphs", True, "hungry"),
    ],
)
def test_names_that_hold_two_words_are_read_by_the_one_that_counts(name, faster, role):
    (c,) = common_practice(read_space({"knobs": {name: SWITCH}}, None), ())
    assert (c.log_speedup > 0) is faster
    assert c.memory_role == role


@pytest.mark.parametrize(
    "name", ["attention_dropout", "async_checkpoint", "save_checkpoint", "distributed_optimizer"]
)
def test_names_that_only_sound_alike_are_left_alone(name):
    assert common_practice(read_space({"knobs": {name: SWITCH}}, None), ()) == ()


def test_flash_attention_3_is_more_than_2():
    s = read_space(
        {
            "knobs": {
                "attn_implementation": {
                    "choices": ["eager", "flash_attention_2", "flash_attention_3"]
                }
            }
        },
        None,
    )
    two, three = common_practice(s, ())
    assert three.log_speedup > two.log_speedup


def test_half_precision_of_a_reduction_is_not_that_of_the_forward():
    s = read_space({"knobs": {"grad_reduce_dtype": {"choices": ["fp32", "bf16"]}}}, None)
    assert all(c.log_speedup < 0.1 for c in common_practice(s, ()))


def test_a_space_in_which_nothing_is_allowed_is_refused_and_not_asked():
    searcher = Searcher({"knobs": {"a": {"choices": [1, 2]}}}, valid=lambda _: "never")
    with pytest.raises(UsageError):
        searcher.ask()


@pytest.mark.parametrize(
    "job",
    [
        {"capacity_gib": "80"},
        {"capacity_gib": -5},
        {"noise_frac": -1},
        {"base_mem_gib": float("nan")},
    ],
)
def test_facts_that_are_no_sound_numbers_are_refused(job):
    with pytest.raises(UsageError):
        Searcher({"knobs": {"a": {"choices": [1, 2]}}}, job=job)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_choices_that_are_not_finite_are_refused(bad):
    with pytest.raises(UsageError):
        Searcher({"knobs": {"a": {"type": "ordinal", "choices": [1.0, 2.0, bad]}}})


@pytest.mark.parametrize(
    "line",
    [
        '{"op": "predict", "settings": [1]}',
        '{"op": "start", "space": {"knobs": {"a": {"type": "bool"}}}, "claims": [5]}',
        '{"op": "start", "space": {"knobs": {"a": {"type": "bool"}}}, "conflicts": [1]}',
        '{"op": "start", "space": {"knobs": {"a": {"type": "bool"}}}, "job": 5}',
    ],
)
def test_a_bad_line_is_answered_and_does_not_end_the_process(line):
    out = []
    serve(['{"op": "start", "space": {"knobs": {"a": {"type": "bool"}}}}', line], out.append)
    assert '"ok": false' in out[-1]
