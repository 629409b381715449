"""The simulated workloads with experts, and the list of all workloads."""

from functools import cache

from search import megatron, workloads
from search.cluster import H100, Constants, Model
from search.knobs import breaks, degree, integer, named, ordinal, patches, surprises, switch
from search.workload import Break, Knob, Workload
from search.workloads import ALLOC, CKPT, plain

MOE_PATCHES = {
    "grouped_experts": "moe_grouped_gemm",
    "fewer_routing_syncs": "moe_no_host_sync",
    "fused_permute": "moe_permute_fusion",
    "overlap_dispatch": "moe_overlap_a2a",
    "fused_ce": "fused_ce",
    "chunked_ce": "chunked_ce",
    "fused_norm": "fused_norm",
    "fused_mlp": "fused_swiglu",
    "recompute_mlp": "moe_act_recompute",
    "drop_syncs": "drop_syncs",
    "bf16_reduce": "bf16_reduce",
    "cuda_graph": "cuda_graph",
    "inplace_residual": "inplace_residual",
    "empty_cache": "empty_cache",
    "delayed_scaling": "fp8_delayed_scaling",
}


def moe_knobs(ep: tuple[int, ...], pp: tuple[int, ...]) -> tuple[Knob, ...]:
    """The settings of a job with experts."""
    return (
        degree("tp", "tp_size", (1, 2, 4, 8)),
        degree("pp", "pp_size", pp),
        degree("ep", "expert_parallel", ep),
        degree("vpp", "vpp_size", (1, 2, 4)),
        integer("mbs", "mbs", (1, 2, 4, 8)),
        switch("seq_par", "sp"),
        ordinal("zero", "zero", (0, 1)),
        named("ckpt", "recompute", CKPT),
        named("precision", "precision", {"bf16": "bf16", "fp8": "fp8"}),
        named("attn", "attn_backend", {"sdpa": "sdpa", "fa2": "flash", "fa3": "flash3"}),
        named("compile", "compile", {"off": "off", "regional": "default"}),
        named("dispatcher", "moe_dispatcher", {n: n for n in ("allgather", "alltoall", "flex")}),
        named("optimizer", "opt_impl", {"foreach": "foreach", "fused": "fused"}),
        ordinal("bucket", "bucket_mb", (25, 100, 400)),
        switch("overlap_reduce", "overlap_grad_reduce"),
        switch("overlap_gather", "overlap_param_gather"),
        switch("async_tp", "async_tp"),
        named("offload", "offload", {"none": "none", "optimizer": "optimizer"}),
        ordinal("channels", "nccl_channels", (0, 4, 16, 32)),
        ordinal("workers", "dataloader_workers", (0, 2, 4, 8)),
        switch("pin", "pin_memory"),
        named("alloc", "alloc_conf", ALLOC),
        switch("manual_gc", "manual_gc"),
    )  # fmt: skip


def moe_breaks() -> tuple[Break, ...]:
    """What breaks jobs with experts."""
    return breaks(
        ("compile_error", {"compile": "default", "overlap_dispatch": True}),
        ("compile_error", {"compile": "default", "grouped_experts": False, "precision": "fp8"}),
        ("crashed", {"overlap_dispatch": True, "ckpt": "full"}),
        ("crashed", {"cuda_graph": True, "fewer_routing_syncs": False}),
        ("crashed", {"cuda_graph": True, "dispatcher": ("alltoall", "flex"), "ckpt": "selective"}),
        ("crashed", {"dispatcher": "flex", "fused_permute": False, "compile": "off"}),
        ("crashed", {"overlap_gather": True, "zero": 0, "bucket": 400}),
        ("nan", {"precision": "fp8", "grouped_experts": True, "delayed_scaling": False}),
        ("nan", {"inplace_residual": True, "fused_permute": True, "ckpt": ("none", "selective")}),
        ("timeout", {"compile": "default", "vpp": 4}),
    )


def moe_8x7b_32gpu() -> Workload:
    """Eight experts of 7B's width, two a token, on 32 devices."""
    knobs = moe_knobs((1, 2, 4, 8), (1, 2, 4, 8)) + patches(**MOE_PATCHES)
    model = Model(
        layers=32, d=4096, heads=32, kv=8, head_dim=128, ffn=14336, vocab=32000, seq=4096,
        global_batch=256, experts=8, top_k=2,
    )  # fmt: skip
    base = Constants(top=0.69, half_tokens=1200, imbalance=0.22, sync_s=0.01)
    return Workload(
        name="moe-8x7b-32gpu",
        model=model,
        device=H100,
        gpus=32,
        constants=surprises(17, knobs, base),
        knobs=knobs,
        fixed={"no_sync": True},
        baseline=plain(
            knobs,
            tp_size=4,
            pp_size=2,
            expert_parallel=2,
            recompute="full",
            zero=1,
            moe_dispatcher="allgather",
            dataloader_workers=2,
        ),
        breaks=moe_breaks(),
        says_memory=0.8,
    )


def moe_64_experts_64gpu() -> Workload:
    """64 fine-grained experts, six a token, on 64 devices."""
    knobs = moe_knobs((1, 4, 8, 16, 32), (1, 2, 4)) + patches(**MOE_PATCHES)
    model = Model(
        layers=28, d=2560, heads=20, kv=20, head_dim=128, ffn=1536, vocab=102400, seq=4096,
        global_batch=512, experts=64, top_k=6,
    )  # fmt: skip
    base = Constants(top=0.67, half_tokens=900, half_width=380, imbalance=0.34, sync_s=0.008)
    return Workload(
        name="moe-64e-64gpu",
        model=model,
        device=H100,
        gpus=64,
        constants=surprises(18, knobs, base),
        knobs=knobs,
        fixed={"no_sync": True},
        baseline=plain(
            knobs,
            tp_size=2,
            pp_size=1,
            expert_parallel=8,
            recompute="full",
            zero=1,
            moe_dispatcher="allgather",
            dataloader_workers=2,
        ),
        breaks=moe_breaks(),
    )


@cache
def all_workloads() -> dict[str, Workload]:
    """Every workload by name."""
    made = (
        workloads.dense_1b_1gpu(),
        workloads.dense_7b_8gpu(),
        workloads.dense_ceiling_16gpu(),
        megatron.dense_13b_32gpu(),
        megatron.dense_30b_64gpu(),
        workloads.dense_3b_few_knobs(),
        moe_8x7b_32gpu(),
        moe_64_experts_64gpu(),
    )
    return {w.name: w for w in made}
