"""The simulated dense workloads in Megatron's style, on 32 and 64 devices."""

from search.cluster import A100_40, H100, Constants, Model
from search.knobs import breaks, degree, integer, named, ordinal, patches, surprises, switch
from search.workload import Break, Knob, Workload
from search.workloads import ALGO, CKPT, host_knobs, plain


def dense_13b_32gpu() -> Workload:
    """A 13B model on 32 devices in Megatron's style."""
    knobs = megatron_knobs((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 5)) + patches(
        fused_ce="cross_entropy_fusion",
        chunked_ce="chunked_cross_entropy",
        fused_norm="persist_layer_norm",
        fused_rope="rope_fusion",
        fused_mlp="bias_swiglu_fusion",
        recompute_mlp="recompute_mlp_only",
        drop_syncs="no_log_sync",
        bf16_reduce="grad_reduce_in_bf16",
        comm_overlap="tp_comm_overlap",
        fuse_qkv="fused_qkv",
        cuda_graph="cuda_graph",
        empty_cache="empty_unused_memory",
        prefetch="prefetch_batch",
    )
    model = Model(
        layers=40, d=5120, heads=40, kv=40, head_dim=128, ffn=13824, vocab=32000, seq=4096,
        global_batch=256,
    )  # fmt: skip
    base = Constants(top=0.74, half_tokens=1000, late_stage=0.2, sync_s=0.01)
    return Workload(
        name="dense-13b-32gpu",
        model=model,
        device=A100_40,
        gpus=32,
        constants=surprises(14, knobs, base),
        knobs=knobs,
        fixed={"no_sync": True},
        baseline=plain(
            knobs,
            tensor_model_parallel_size=8,
            recompute_granularity="full",
            micro_batch_size=1,
            num_workers=2,
            use_distributed_optimizer="0",
            attention_backend="unfused",
        ),
        breaks=megatron_breaks(),
        strict_seq_par=True,
    )


def dense_30b_64gpu() -> Workload:
    """A 30B model on 64 devices with few facts told about it."""
    knobs = megatron_knobs((1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 4), (1, 2, 3, 6)) + patches(
        fused_ce="fused_ce",
        chunked_ce="chunked_ce",
        fused_norm="fused_norm",
        fused_mlp="fused_swiglu",
        recompute_mlp="recompute_mlp",
        drop_syncs="drop_syncs",
        bf16_reduce="bf16_reduce",
        comm_overlap="comm_overlap",
        delayed_scaling="delayed_scaling",
        inplace_residual="inplace_residual",
        custom_attention="custom_attention",
        zero_grad_none="zero_grad_none",
    )
    knobs += (named("precision", "fp8_format", {"none": "bf16", "hybrid": "fp8"}),)
    model = Model(
        layers=48, d=7168, heads=56, kv=56, head_dim=128, ffn=20480, vocab=64000, seq=4096,
        global_batch=512,
    )  # fmt: skip
    base = Constants(top=0.7, half_tokens=1500, half_width=700, late_stage=0.3, overlap=0.6)
    extra = breaks(
        ("nan", {"precision": "fp8", "delayed_scaling": False, "ckpt": ("none", "selective")}),
        ("nan", {"precision": "fp8", "inplace_residual": True}),
        ("compile_error", {"inplace_residual": True, "compile": "default"}),
        ("crashed", {"precision": "fp8", "recompute_mlp": True, "seq_par": True}),
    )
    return Workload(
        name="dense-30b-64gpu",
        model=model,
        device=H100,
        gpus=64,
        constants=surprises(15, knobs, base),
        knobs=knobs,
        fixed={"no_sync": True},
        baseline=plain(
            knobs,
            tensor_model_parallel_size=8,
            pipeline_model_parallel_size=2,
            recompute_granularity="full",
            micro_batch_size=1,
            num_workers=2,
        ),
        breaks=megatron_breaks() + extra,
        facts=(
            "layers", "d_model", "heads", "seq", "global_batch", "gpus", "capacity_gib",
            "peak_bf16", "peak_fp8", "hbm", "vocab", "ffn",
        ),
    )  # fmt: skip


def megatron_knobs(
    tp: tuple[int, ...], pp: tuple[int, ...], cp: tuple[int, ...], vpp: tuple[int, ...]
) -> tuple[Knob, ...]:
    """The settings of a Megatron-like launcher."""
    return (
        degree("tp", "tensor_model_parallel_size", tp),
        degree("pp", "pipeline_model_parallel_size", pp),
        degree("cp", "context_parallel_size", cp),
        degree("vpp", "virtual_pipeline", vpp),
        integer("mbs", "micro_batch_size", (1, 2, 4, 8)),
        switch("seq_par", "sequence_parallel"),
        named("zero", "use_distributed_optimizer", {"0": 0, "1": 1}),
        named("ckpt", "recompute_granularity", CKPT),
        named("attn", "attention_backend", {"unfused": "math", "fused": "sdpa", "flash": "flash"}),
        named("compile", "torch_compile", {"off": "off", "on": "default"}),
        named("optimizer", "optimizer_kernel", {"foreach": "foreach", "apex_fused": "fused"}),
        ordinal("bucket", "ddp_bucket_mb", (25, 100, 400)),
        switch("overlap_reduce", "overlap_grad_reduce"),
        switch("overlap_gather", "overlap_param_gather"),
        switch("async_tp", "async_tp"),
        named("offload", "optimizer_cpu_offload", {"no": "none", "yes": "optimizer"}),
        ordinal("channels", "NCCL_MIN_NCHANNELS", (0, 2, 8, 32)),
        named("algo", "NCCL_ALGO", ALGO),
        *host_knobs(),
    )


def megatron_breaks() -> tuple[Break, ...]:
    """What breaks under a Megatron-like launcher."""
    return breaks(
        ("compile_error", {"compile": "default", "cuda_graph": True, "overlap_reduce": True}),
        ("compile_error", {"compile": "default", "recompute_mlp": True, "ckpt": "selective"}),
        ("crashed", {"overlap_gather": True, "zero": 0}),
        ("crashed", {"async_tp": True, "comm_overlap": True, "seq_par": True}),
        ("crashed", {"async_tp": True, "seq_par": False, "compile": "default"}),
        ("crashed", {"cuda_graph": True, "overlap_gather": True, "ckpt": "full"}),
        ("crashed", {"offload": "optimizer", "overlap_gather": True, "pin": False}),
        ("timeout", {"compile": "default", "vpp": (4, 5, 6)}),
        ("nan", {"bf16_reduce": True, "zero": 1, "bucket": 400}),
    )
