import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrarsi.estimate import read_job
from infrarsi.models.encoding import EncodedKnob
from infrarsi.search.roles import columns_of, find_roles

PLAIN = st.one_of(st.booleans(), st.integers(-4, 64), st.floats(-2, 64), st.text(max_size=12))
NAMES = (
    "micro_batch_size", "grad_accum", "tp", "pp", "vpp", "cp", "ep", "dp", "sequence_parallel",
    "sharding", "recompute", "precision", "bf16", "fp8", "activation_offload", "cpu_offload",
    "attn_implementation", "compile",
)  # fmt: skip


def knob(name, *choices, is_patch=False):
    return EncodedKnob(name=name, choices=choices, is_patch=is_patch)


def read(name, value):
    found = find_roles((knob(name, value),))
    return columns_of({name: value}, found)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("micro_batch_size", "micro_batch_seqs"),
        ("microBatchSize", "micro_batch_seqs"),
        ("training.per_device_train_batch_size", "micro_batch_seqs"),
        ("mbs", "micro_batch_seqs"),
        ("gradient_accumulation_steps", "grad_accum"),
        ("tensor_model_parallel_size", "tp"),
        ("tensor-parallel-degree", "tp"),
        ("pipeline_model_parallel_size", "pp"),
        ("virtual_pipeline_model_parallel_size", "vpp"),
        ("num_model_chunks", "vpp"),
        ("context_parallel_size", "cp"),
        ("expertParallelSize", "ep"),
        ("data_parallel_size", "dp"),
    ],
)
def test_counts_are_known_under_the_names_that_trainers_give_them(name, column):
    assert read(name, 4) == {column: 4}


@pytest.mark.parametrize(
    ("name", "value", "columns"),
    [
        ("sharding_strategy", "FULL_SHARD", {"zero_stage": 3}),
        ("sharding_strategy", "SHARD_GRAD_OP", {"zero_stage": 2}),
        ("sharding_strategy", "NO_SHARD", {"zero_stage": 0}),
        ("zero_stage", 1, {"zero_stage": 1}),
        ("fsdp", True, {"zero_stage": 3}),
        ("fsdp", False, {"zero_stage": 0}),
        ("recompute_granularity", "selective", {"act_ckpt_class": "selective"}),
        ("gradient_checkpointing", True, {"act_ckpt_class": "full"}),
        ("activation_checkpointing", "none", {"act_ckpt_class": "none"}),
        ("dtype", "float16", {"precision_class": "fp16"}),
        ("dtype", "torch.bfloat16", {"precision_class": "bf16"}),
        ("fp8_recipe", "hybrid", {"precision_class": "fp8"}),
        ("fp8", False, {}),
        ("activations_offload", "cpu", {"act_offload": True}),
        ("activations_offload", "none", {"act_offload": False}),
        ("attn_implementation", "eager", {"attn_impl": "eager"}),
        ("use_flash_attention", True, {"attn_impl": "flash"}),
        ("torch_compile", "max-autotune", {"compile": True}),
        ("torch_compile", "off", {"compile": False}),
        ("sequence_parallel", "on", {"sequence_parallel": True}),
    ],
)
def test_values_are_read_as_columns_of_an_estimate(name, value, columns):
    choices = (value, True) if not columns else (value,)
    found = find_roles((knob(name, *choices),))
    assert columns_of({name: value}, found) == columns


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 4),
        ("global_batch_size", 4),
        ("num_workers", 4),
        ("checkpoint_interval", 4),
        ("max_batches", 4),
        ("tp_overlap", True),
        ("micro_batch_size", "auto"),
        ("micro_batch_size", True),
        ("sharding_strategy", 7),
    ],
)
def test_other_names_and_values_without_a_meaning_have_no_role(name, value):
    assert find_roles((knob(name, value),)) == {}


def test_a_patch_has_no_role_whatever_its_name():
    assert find_roles((knob("bf16", False, True, is_patch=True),)) == {}


def test_of_two_knobs_for_one_thing_the_first_has_the_role():
    found = find_roles((knob("fp8", False, True), knob("dtype", "bf16", "fp32")))
    assert {name: role.column for name, role in found.items()} == {"fp8": "precision_class"}


def test_a_setting_is_read_by_all_its_roles_and_by_nothing_else():
    knobs = (knob("tp", 1, 2), knob("recompute", "none", "full"), knob("dropout", 0.0, 0.1))
    setting = {"tp": 2, "recompute": "full", "dropout": 0.1}
    assert columns_of(setting, find_roles(knobs)) == {"tp": 2, "act_ckpt_class": "full"}


@given(st.sampled_from(NAMES), st.lists(PLAIN, min_size=1, max_size=4))
def test_any_plain_value_of_a_knob_with_a_role_can_be_read(name, choices):
    found = find_roles((knob(name, *choices),))
    for choice in choices:
        assert set(columns_of({name: choice}, found)) <= {
            found[name].column if name in found else "",
            "sharding",
        }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("micro_batch_size", 2), ("grad_accum", 4), ("tp", 4), ("pp", 2), ("cp", 2), ("ep", 2),
        ("sequence_parallel", False), ("sharding", "full_shard"), ("recompute", "full"),
        ("precision", "fp8"), ("fp8", True), ("activation_offload", True), ("cpu_offload", True),
        ("attn_implementation", "eager"), ("compile", True),
    ],
)  # fmt: skip
def test_what_a_role_reads_changes_the_job_that_is_estimated(name, value):
    told = {
        "hardware": "H100-SXM-80GB", "n_gpus": 16, "n_layers": 32, "d_model": 4096,
        "n_experts": 8, "topk": 2, "global_batch_seqs": 64, "tp": 2,
    }  # fmt: skip
    assert read_job({**told, **read(name, value)}) != read_job(told)
