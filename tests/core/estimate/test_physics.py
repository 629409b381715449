import time

import pytest

from infrarsi.estimate import UnreadableJob, physics, read_job

GIB = 2**30
LLAMA_8B = {
    "hardware": "H100-SXM-80GB", "n_gpus": 64, "n_layers": 32, "d_model": 4096, "n_heads": 32,
    "n_kv_heads": 8, "d_ffn": 14336, "vocab_size": 128256, "gated_mlp": True,
    "tied_embeddings": False, "seq_len": 8192, "micro_batch_seqs": 1, "global_batch_seqs": 128,
    "precision_class": "bf16", "zero_stage": 1, "framework": "Megatron-LM/core",
}  # fmt: skip


def costs(**changes):
    return physics(read_job({**LLAMA_8B, **changes}))


def test_parameters_and_flops_are_those_of_the_published_model():
    job = read_job(LLAMA_8B)
    assert job.model.params == pytest.approx(8.03e9, rel=0.001)
    assert physics(job).model_flops_per_token == pytest.approx(
        6 * 7.505e9 + 6 * 32 * 4096 * 8192, rel=0.001
    )


def test_zero_shares_optimizer_then_gradients_then_parameters():
    terms = [costs(zero_stage=stage).memory_bytes for stage in range(4)]
    state = [t["optimizer_state"] for t in terms]
    assert state[1] == pytest.approx(state[0] / 64)
    assert terms[2]["gradients"] == pytest.approx(terms[1]["gradients"] / 64)
    assert terms[3]["parameters"] == pytest.approx(terms[2]["parameters"] / 64)
    assert terms[0]["parameters"] + terms[0]["gradients"] + state[0] == pytest.approx(
        18 * 8.03e9, rel=0.001
    )


def test_the_first_stage_keeps_as_many_micro_batches_as_there_are_stages():
    flat, piped = costs(pp=1), costs(pp=4)
    assert piped.stage == "first"
    assert piped.memory_bytes["logits"] == 0
    assert piped.memory_bytes["activations"] == pytest.approx(
        flat.memory_bytes["activations"], rel=0.01
    )


def test_the_bubble_is_the_textbooks():
    assert costs(pp=4, dp=16).bubble_frac == pytest.approx(3 / (8 + 3))
    assert costs(pp=4, vpp=2, dp=16).bubble_frac == pytest.approx(3 / (16 + 3))
    assert costs().bubble_frac == 0


def test_tensor_parallelism_in_the_node_goes_over_the_link_and_beyond_over_the_network():
    assert costs(tp=8).communication["tp"].link == "link"
    assert costs(tp=16).communication["tp"].link == "network"
    volume = costs(tp=8).communication["tp"].bytes
    assert volume == pytest.approx(8 * 7 / 8 * 2 * 8192 * 4096 * 32 * 16)


def test_full_checkpointing_costs_a_forward_and_keeps_the_entries():
    kept, full = costs(act_ckpt_class="none"), costs(act_ckpt_class="full")
    assert 0.9 * kept.flops / 3 < full.recompute_flops < kept.flops / 3
    assert full.memory_bytes["activations"] < 0.15 * kept.memory_bytes["activations"]


def test_expert_parallelism_shares_the_experts_alone():
    mixture = {"n_experts": 8, "topk": 2, "d_ffn_expert": 14336, "n_kv_heads": 8}
    job = read_job({**LLAMA_8B, "arch": "moe", **mixture, "vocab_size": 32000})
    assert job.model.params == pytest.approx(46.7e9, rel=0.01)
    assert job.model.active_params == pytest.approx(12.9e9, rel=0.01)
    whole, shared = costs(arch="moe", **mixture), costs(arch="moe", ep=8, **mixture)
    spared = whole.memory_bytes["parameters"] - shared.memory_bytes["parameters"]
    assert spared == pytest.approx(2 * job.model.expert_params * 7 / 8, rel=0.01)
    assert shared.communication["ep"].bytes > 0


def test_a_frozen_quantised_base_keeps_four_bits_and_no_weight_gradients():
    lora = costs(task="lora", n_gpus=1, global_batch_seqs=1)
    qlora = costs(task="qlora", n_gpus=1, global_batch_seqs=1)
    assert qlora.memory_bytes["parameters"] < 0.45 * lora.memory_bytes["parameters"]
    assert lora.memory_bytes["gradients"] < 0.01 * costs(zero_stage=0).memory_bytes["gradients"]
    assert lora.flops < 0.75 * costs(n_gpus=1, global_batch_seqs=1).flops


def test_the_names_of_the_searchs_job_say_the_same():
    other = {
        "gpus": 64, "layers": 32, "d_model": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128,
        "ffn": 14336, "vocab": 128256, "seq": 8192, "global_batch": 128, "gated_mlp": True,
        "tied_embeddings": False, "micro_batch_seqs": 1, "zero_stage": 1,
        "framework": "Megatron-LM/core", "hardware": "H100-SXM-80GB",
    }  # fmt: skip
    assert physics(read_job(other)) == costs()


def test_told_hardware_needs_no_known_device():
    told = {k: v for k, v in LLAMA_8B.items() if k != "hardware"}
    numbers = {"peak_bf16": 5e14, "hbm": 2e12, "nvlink": 2e11, "ib": 2e10, "capacity_gib": 40}
    job = read_job({**told, **numbers, "gpus_per_node": 4})
    assert (job.machine.capacity_gib, job.machine.domain) == (40, 4)
    assert physics(job).compute_s == pytest.approx(physics(job).flops / 5e14)


def test_told_counts_win_over_the_shape():
    job = read_job(
        {**LLAMA_8B, "params_dense": 5e9, "params_expert": 3e9, "experts": 16, "top_k": 2}
    )
    assert job.model.params == pytest.approx(8e9)
    assert job.model.active_params == pytest.approx(5e9 + 3e9 / 8)
    assert costs(flops_per_token=1e10).model_flops_per_token == 1e10


def test_an_unknown_device_lists_near_names():
    with pytest.raises(UnreadableJob, match="H100-SXM-80GB"):
        read_job({**LLAMA_8B, "hardware": "H100"})


def test_a_size_alone_gives_a_shape_of_that_size():
    job = read_job({"hardware": "A100-SXM-80GB", "n_params": 7e9})
    assert 28 <= job.model.layers <= 45
    assert {"n_layers", "d_model", "seq_len"} <= set(job.assumed)
    assert read_job({"hardware": "H200", "model": "qwen3-30b-a3b"}).model.active_params == 3e9


def test_one_call_is_cheap():
    started_s = time.process_time()
    for _ in range(200):
        costs()
    assert (time.process_time() - started_s) / 200 < 1e-3
