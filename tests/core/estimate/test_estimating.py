import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrarsi.estimate import UnreadableJob, estimate_job, physics, read_job
from infrarsi.units import GIB

LLAMA_8B = {
    "hardware": "H100-SXM-80GB", "n_gpus": 64, "n_layers": 32, "d_model": 4096, "n_heads": 32,
    "n_kv_heads": 8, "d_ffn": 14336, "vocab_size": 128256, "gated_mlp": True,
    "tied_embeddings": False, "seq_len": 8192, "micro_batch_seqs": 1, "global_batch_seqs": 128,
    "precision_class": "bf16", "zero_stage": 3, "framework": "torchtitan",
    "act_ckpt_class": "full",
}  # fmt: skip
SMALL = {**LLAMA_8B, "n_layers": 4, "n_gpus": 8, "global_batch_seqs": 16}


def estimate(**changes):
    return estimate_job({**LLAMA_8B, **changes})


def test_every_value_lies_in_its_interval():
    answer = estimate()
    for name in ("step_time_s", "tokens_per_s_per_gpu", "mfu_frac", "peak_mem_gib"):
        bounds = getattr(answer, name)
        assert 0 < bounds.low < bounds.value < bounds.high, name


def test_rate_and_mfu_are_the_step_times():
    answer, costs = estimate(), physics(read_job(LLAMA_8B))
    rate = 128 * 8192 / 64 / answer.step_time_s.value
    assert answer.tokens_per_s_per_gpu.value == pytest.approx(rate)
    assert answer.tokens_per_s_per_gpu.low == pytest.approx(128 * 128 / answer.step_time_s.high)
    mfu = rate * costs.model_flops_per_token / 989.4e12
    assert answer.mfu_frac.value == pytest.approx(mfu)
    assert 0.2 < mfu < 0.6


def test_memory_terms_are_named_and_add_up():
    answer = estimate(tp=2, zero_stage=1, framework="Megatron-LM")
    assert {"parameters", "gradients", "optimizer_state", "activations", "logits"} <= set(
        answer.memory_terms_gib
    )
    assert sum(answer.memory_terms_gib.values()) == pytest.approx(answer.peak_mem_gib.value)


def test_no_step_is_faster_than_its_flops_at_the_peak():
    costs = physics(read_job(LLAMA_8B))
    least_s = (costs.flops - costs.recompute_flops) / 989.4e12
    assert estimate().step_time_s.low >= least_s


def test_more_recomputation_is_slower_and_smaller():
    kept, full = estimate(act_ckpt_class="none"), estimate(act_ckpt_class="full")
    assert full.step_time_s.value > kept.step_time_s.value
    assert full.peak_mem_gib.value < kept.peak_mem_gib.value


def test_a_job_is_surer_to_fit_a_larger_device():
    sizes = [estimate(capacity_gib=gib).p_fit for gib in (5, 20, 40, 80, 1000)]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.02
    assert sizes[-1] > 0.98


def test_the_devices_use_is_more_than_the_allocators():
    allocator, device = estimate(), estimate(mem_basis="device_used")
    assert "context" not in allocator.memory_terms_gib
    assert device.memory_terms_gib["context"] > 0.5
    assert device.peak_mem_gib.value > allocator.peak_mem_gib.value
    assert any("context" in name for name in allocator.omitted)


def test_a_pipelines_last_rank_can_be_asked_for():
    told = {"pp": 4, "zero_stage": 1, "act_ckpt_class": "none", "framework": "Megatron-LM"}
    whole = estimate(**told)
    last = estimate(**told, mem_basis="allocator_allocated_peak_last_rank")
    assert last.peak_mem_gib.value < whole.peak_mem_gib.value
    assert "logits" in last.memory_terms_gib
    assert "logits" not in whole.memory_terms_gib


def test_offloaded_optimizer_state_is_not_on_the_device():
    told = {"optimizer": "Adam + CPU offload of optimizer/params"}
    assert "optimizer_state" not in estimate(**told).memory_terms_gib


def test_outcomes_are_not_inputs():
    told = {"step_time_s": 1.0, "peak_mem_gib": 3.0, "tokens_per_s_per_gpu": 9.0, "oom": True}
    assert estimate(**told) == estimate()


def test_what_is_assumed_and_left_out_is_said():
    bare = estimate_job({"hardware": "H200", "model": "qwen3-30b-a3b", "n_gpus": 8})
    assert {"assumed: n_layers", "assumed: seq_len", "imbalance between experts"} <= set(
        bare.omitted
    )
    assert not any(name.startswith("assumed") for name in estimate().omitted)


@pytest.mark.parametrize("task", ["pretrain", "full_ft", "lora", "qlora", "peft:ia3", "adapter"])
@pytest.mark.parametrize("framework", ["", "HF Trainer", "torchtune", "MaxText", "nanotron", "x"])
def test_every_task_and_framework_has_a_finite_estimate(task, framework):
    answer = estimate_job({**SMALL, "task": task, "framework": framework})
    assert all(math.isfinite(x) for x in answer.peak_mem_gib.model_dump().values())
    assert 0 <= answer.p_fit <= 1


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"])
@pytest.mark.parametrize("device", ["H100-SXM-80GB", "V100-SXM2-32GB", "TPU-v6e", "MI300X"])
def test_every_precision_on_every_kind_of_device_has_an_estimate(precision, device):
    answer = estimate_job({**SMALL, "precision_class": precision, "hardware": device})
    assert answer.step_time_s.value > 0


def test_unanswerable_jobs_say_what_to_do():
    with pytest.raises(UnreadableJob, match="Give hardware"):
        estimate_job({"n_params": 7e9})
    with pytest.raises(UnreadableJob, match="Give n_params"):
        estimate_job({"hardware": "H200"})
    with pytest.raises(UnreadableJob, match="n_gpus is -8"):
        estimate(n_gpus=-8)
    with pytest.raises(UnreadableJob, match="'many'"):
        estimate(seq_len="many")


def test_a_published_run_that_was_kept_lies_in_its_interval():
    answer = estimate(n_gpus=8, global_batch_seqs=8, act_ckpt_class="selective")
    assert answer.tokens_per_s_per_gpu.low < 5762 < answer.tokens_per_s_per_gpu.high


def test_importing_loads_no_fitting_library():
    program = (
        "import sys, json, infrarsi.estimate;"
        "print(json.dumps([m for m in ('numpy','scipy','sklearn','pandas','torch')"
        " if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert json.loads(done.stdout) == []


def test_terms_are_bytes_of_the_device_in_gib():
    whole = estimate(n_gpus=1, global_batch_seqs=1, zero_stage=0, framework="")
    assert whole.memory_terms_gib["parameters"] == pytest.approx(2 * 8.03e9 / GIB, rel=0.3)


NUMBERS = (
    "n_gpus", "n_params", "n_active_params", "n_layers", "d_model", "n_heads", "d_ffn", "seq_len",
    "n_experts", "topk", "micro_batch_seqs", "global_batch_seqs", "grad_accum", "tp", "pp", "vpp",
    "cp", "dp", "ep", "zero_stage", "params_expert", "flops_per_token", "hbm", "capacity_gib",
)  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(NUMBERS),
        st.one_of(
            st.integers(-1, 1000), st.floats(), st.text(max_size=3), st.none(), st.booleans(),
            st.just(10**400),
        ),
    ),
    st.sampled_from(["pretrain", "qlora", "?"]),
    st.sampled_from(["", "full", "selective"]),
)  # fmt: skip
def test_any_description_is_answered_or_refused(numbers, task, checkpoint):
    told = {"hardware": "TPU-v6e", "n_params": 1e9, "task": task, "act_ckpt_class": checkpoint}
    try:
        answer = estimate_job({**told, **numbers})
    except UnreadableJob:
        return
    for bounds in (answer.step_time_s, answer.mfu_frac, answer.peak_mem_gib):
        assert 0 < bounds.low <= bounds.value <= bounds.high < math.inf
    assert 0 <= answer.p_fit <= 1


def test_degrees_that_do_not_multiply_to_the_devices_are_said():
    assert "assumed: dp" in estimate(tp=8, pp=16, n_gpus=64).omitted
    assert "assumed: dp" not in estimate(tp=8, pp=8, n_gpus=64).omitted
