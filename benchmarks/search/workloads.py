"""The simulated dense workloads on one device to 16, in different code bases' spellings."""

from typing import Any

from search.cluster import A100_40, H100, Constants, Model
from search.knobs import breaks, degree, integer, named, ordinal, patches, surprises, switch
from search.workload import Knob, Workload

CKPT = {"none": "none", "selective": "selective", "full": "full"}
ALLOC = {"": "default", "expandable_segments:True": "expandable"}
ALGO = {"auto": "auto", "Ring": "ring", "Tree": "tree"}


def host_knobs() -> tuple[Knob, ...]:
    """Knobs of the input pipeline, allocator and host that most code bases spell alike."""
    return (
        ordinal("workers", "num_workers", (0, 2, 4, 8)),
        switch("pin", "pin_memory"),
        named("alloc", "PYTORCH_CUDA_ALLOC_CONF", ALLOC),
        switch("cudnn_benchmark", "cudnn_benchmark"),
        switch("manual_gc", "manual_gc"),
    )


def dense_1b_1gpu() -> Workload:
    """A 1.5B model with hand-written attention on one 40 GiB device."""
    knobs = (
        ordinal("mbs", "micro_batch_size", (1, 2, 4, 8, 16, 32)),
        named("ckpt", "gradient_checkpointing", {"off": "none", **dict(list(CKPT.items())[1:])}),
        named("precision", "dtype", {"float32": "fp32", "bfloat16": "bf16"}),
        switch("tf32", "allow_tf32"),
        named("attn", "sdpa_backend", {"efficient": "sdpa", "flash": "flash"}),
        named(
            "compile",
            "torch_compile",
            {"off": "off", "default": "default", "max-autotune": "autotune"},
        ),
        named("optimizer", "adamw", {"for-loop": "loop", "foreach": "foreach", "fused": "fused"}),
        named("offload", "optimizer_offload", {"none": "none", "cpu": "optimizer"}),
        *host_knobs(),
        *patches(
            sdpa="patch_sdpa",
            fused_ce="patch_fused_cross_entropy",
            chunked_ce="patch_chunked_loss",
            fused_norm="patch_fused_rmsnorm",
            fused_rope="patch_fused_rope",
            fused_mlp="patch_swiglu",
            inplace_residual="patch_inplace_residual",
            drop_syncs="patch_no_item_sync",
            prefetch="patch_prefetch",
            zero_grad_none="patch_set_to_none",
            fused_clip="patch_foreach_clip",
            pad_vocab="patch_pad_vocab",
            cuda_graph="patch_cuda_graph",
            channels_last="patch_channels_last",
            custom_attention="patch_triton_attention",
            empty_cache="patch_empty_cache",
        ),
    )
    model = Model(
        layers=24, d=2048, heads=16, kv=16, head_dim=128, ffn=5632, vocab=50257, seq=2048,
        global_batch=64, tied=True,
    )  # fmt: skip
    base = Constants(top=0.7, half_tokens=800, sync_s=0.02, sample_s=0.006, kernels=74)
    return Workload(
        name="dense-1.5b-1gpu",
        model=model,
        device=A100_40,
        gpus=1,
        constants=surprises(11, knobs, base),
        knobs=knobs,
        fixed={"manual_attention": True},
        baseline=plain(
            knobs,
            micro_batch_size=1,
            dtype="bfloat16",
            num_workers=2,
            adamw="for-loop",
            sdpa_backend="efficient",
        ),
        breaks=breaks(
            ("compile_error", {"compile": "autotune", "ckpt": "selective"}),
            ("compile_error", {"compile": "autotune", "fused_ce": True}),
            ("compile_error", {"compile": "default", "custom_attention": True, "sdpa": True}),
            ("crashed", {"cuda_graph": True, "drop_syncs": False, "compile": "off"}),
            ("crashed", {"cuda_graph": True, "offload": "optimizer", "pin": False}),
            ("crashed", {"inplace_residual": True, "ckpt": "full", "sdpa": True}),
            ("crashed", {"fused_mlp": True, "precision": "fp32", "tf32": False}),
            ("nan", {"inplace_residual": True, "fused_norm": False, "compile": "off"}),
        ),
    )


def dense_7b_8gpu() -> Workload:
    """A 7B model on one node, data and tensor parallel, with FSDP or ZeRO."""
    knobs = (
        degree("tp", "tp", (1, 2, 4, 8)),
        degree("cp", "cp", (1, 2, 4)),
        degree("dp", "dp", (1, 2, 4, 8)),
        integer("mbs", "mbs", (1, 2, 4, 8, 16)),
        ordinal("accum", "grad_accum", (1, 2, 4, 8, 16, 32, 64)),
        switch("seq_par", "sequence_parallel"),
        named(
            "zero",
            "sharding",
            {"ddp": 0, "zero1": 1, "shard_grad_op": 2, "full_shard": 3},
        ),
        named("ckpt", "act_ckpt", CKPT),
        named("precision", "precision", {"bf16": "bf16", "fp8": "fp8"}),
        named("attn", "attn_impl", {"sdpa": "sdpa", "flash2": "flash", "flash3": "flash3"}),
        named(
            "compile",
            "compile",
            {"none": "off", "default": "default", "max-autotune": "autotune"},
        ),
        named("optimizer", "optimizer_impl", {"foreach": "foreach", "fused": "fused"}),
        ordinal("bucket", "bucket_cap_mb", (10, 25, 100, 400)),
        switch("overlap_reduce", "overlap_grad_reduce"),
        switch("overlap_gather", "forward_prefetch"),
        switch("async_tp", "async_tp"),
        ordinal("channels", "NCCL_MIN_NCHANNELS", (0, 4, 16, 32)),
        named("algo", "NCCL_ALGO", ALGO),
        *host_knobs(),
        *patches(
            fused_ce="fused_linear_ce",
            chunked_ce="chunked_ce",
            fused_norm="fused_rmsnorm",
            fused_rope="fused_rope",
            fused_mlp="fused_swiglu",
            recompute_mlp="recompute_mlp",
            inplace_residual="inplace_residual",
            no_sync="no_sync",
            drop_syncs="drop_syncs",
            bf16_reduce="bf16_grad_reduce",
            delayed_scaling="fp8_delayed_scaling",
            comm_overlap="tp_comm_overlap",
            offload_state="cpu_offload_state",
            empty_cache="empty_cache",
        ),
    )
    model = Model(
        layers=32, d=4096, heads=32, kv=8, head_dim=128, ffn=11008, vocab=32000, seq=8192,
        global_batch=128,
    )  # fmt: skip
    base = Constants(top=0.73, half_tokens=1300, sync_s=0.015)
    return Workload(
        name="dense-7b-8gpu",
        model=model,
        device=H100,
        gpus=8,
        constants=surprises(12, knobs, base),
        knobs=knobs,
        baseline=plain(
            knobs,
            dp=8,
            mbs=1,
            grad_accum=16,
            sharding="full_shard",
            act_ckpt="full",
            attn_impl="sdpa",
            bucket_cap_mb=25,
            overlap_grad_reduce=True,
            num_workers=4,
            pin_memory=True,
        ),
        breaks=breaks(
            ("compile_error", {"compile": "autotune", "zero": 3}),
            ("compile_error", {"compile": "default", "fused_ce": True, "tp": (2, 4, 8)}),
            ("compile_error", {"compile": "autotune", "inplace_residual": True}),
            ("crashed", {"no_sync": True, "zero": 2}),
            ("crashed", {"async_tp": True, "comm_overlap": True, "seq_par": True}),
            ("crashed", {"attn": "flash3", "cp": (2, 4), "ckpt": "selective"}),
            ("crashed", {"offload_state": True, "overlap_gather": True, "zero": 3}),
            ("nan", {"precision": "fp8", "delayed_scaling": False, "fused_norm": True}),
            ("nan", {"precision": "fp8", "bf16_reduce": True, "compile": "default"}),
        ),
    )  # fmt: skip


def dense_ceiling_16gpu() -> Workload:
    """A 9B model of a large vocabulary on 16 devices of 40 GiB: the optimum is near the ceiling."""
    knobs = (
        degree("tp", "tensor_parallel_size", (1, 2, 4, 8)),
        degree("pp", "pipeline_parallel_size", (1, 2, 4)),
        ordinal("mbs", "micro_batch", (1, 2, 4, 8)),
        switch("seq_par", "sequence_parallel"),
        ordinal("zero", "zero_stage", (0, 1, 2, 3)),
        named("ckpt", "recompute", CKPT),
        named("attn", "attention", {"eager": "math", "sdpa": "sdpa", "flash": "flash"}),
        named("compile", "compile", {"off": "off", "on": "default"}),
        named("optimizer", "adam", {"foreach": "foreach", "fused": "fused"}),
        named("offload", "offload", {"none": "none", "optimizer": "optimizer"}),
        ordinal("bucket", "reduce_bucket_mb", (25, 100, 400, 1000)),
        switch("overlap_reduce", "overlap_comm"),
        switch("overlap_gather", "overlap_param_gather"),
        switch("async_tp", "async_tensor_parallel"),
        ordinal("channels", "NCCL_MIN_NCHANNELS", (0, 4, 16)),
        *host_knobs(),
        *patches(
            fused_ce="fused_ce",
            chunked_ce="chunked_ce",
            fused_norm="fused_norm",
            fused_mlp="fused_glu",
            recompute_mlp="recompute_mlp",
            inplace_residual="inplace_residual",
            no_sync="no_sync",
            drop_syncs="drop_syncs",
            bf16_reduce="bf16_reduce",
            zero_grad_none="zero_grad_none",
            offload_state="offload_state",
            empty_cache="empty_cache",
            custom_attention="custom_attention",
        ),
    )
    model = Model(
        layers=42, d=3584, heads=16, kv=8, head_dim=256, ffn=14336, vocab=256000, seq=4096,
        global_batch=128, tied=True,
    )  # fmt: skip
    base = Constants(top=0.7, half_tokens=1500, fragmentation=0.09, late_stage=0.4)
    return Workload(
        name="dense-9b-ceiling",
        model=model,
        device=A100_40,
        gpus=16,
        constants=surprises(13, knobs, base),
        knobs=knobs,
        baseline=plain(
            knobs,
            tensor_parallel_size=8,
            micro_batch=1,
            zero_stage=1,
            recompute="full",
            attention="sdpa",
            num_workers=4,
            reduce_bucket_mb=25,
        ),
        breaks=breaks(
            ("compile_error", {"compile": "default", "fused_norm": True, "seq_par": True}),
            ("compile_error", {"compile": "default", "custom_attention": True, "attn": "flash"}),
            ("crashed", {"no_sync": True, "zero": 3}),
            ("crashed", {"offload": "optimizer", "overlap_gather": True, "zero": (2, 3)}),
            ("crashed", {"fused_ce": True, "pp": (2, 4), "recompute_mlp": True}),
            ("nan", {"inplace_residual": True, "ckpt": "selective"}),
        ),
        says_memory=0.7,
    )


def dense_3b_few_knobs() -> Workload:
    """A 3B model whose code has few knobs."""
    knobs = (
        ordinal("mbs", "batch_per_device", (1, 2, 4, 8, 16)),
        named("ckpt", "checkpointing", CKPT),
        ordinal("zero", "zero_stage", (0, 1, 2, 3)),
        named("compile", "compile", {"off": "off", "default": "default"}),
        named("attn", "attn", {"eager": "math", "sdpa": "sdpa"}),
        ordinal("workers", "num_workers", (0, 2, 4)),
        *patches(fused_ce="fused_ce", no_sync="no_sync", fused_norm="fused_norm"),
    )
    model = Model(
        layers=32, d=2560, heads=32, kv=32, head_dim=80, ffn=6912, vocab=50304, seq=2048,
        global_batch=128,
    )  # fmt: skip
    return Workload(
        name="dense-3b-few-knobs",
        model=model,
        device=A100_40,
        gpus=8,
        constants=surprises(16, knobs, Constants(half_tokens=1100)),
        knobs=knobs,
        fixed={"optimizer": "foreach"},
        baseline=plain(knobs, zero_stage=1, checkpointing="full", attn="eager"),
        breaks=breaks(
            ("crashed", {"no_sync": True, "zero": (2, 3)}),
            ("compile_error", {"fused_ce": True, "compile": "default"}),
        ),
    )


def plain(knobs: tuple[Knob, ...], **chosen: Any) -> dict[str, Any]:
    """A naive user's setting: the first choice of every knob except those named."""
    setting = {k.name: k.choices[0] for k in knobs}
    assert set(chosen) <= set(setting)
    return setting | chosen
