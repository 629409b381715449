"""What a simulated job is made of: a device, a model, its constants, and a configuration.

Leaves out how long anything takes (`times`, `traffic`) and what it holds (`memory`).
"""

from dataclasses import dataclass, field
from typing import Any

GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Device:
    """One accelerator and its links; FLOP/s, bytes/s, GiB."""

    name: str
    capacity_gib: float
    peak_bf16: float
    peak_fp8: float
    hbm: float
    nvlink: float
    ib: float
    pcie: float = 22e9
    gpus_per_node: int = 8


H100 = Device(
    name="H100-SXM-80GB",
    capacity_gib=79.1,
    peak_bf16=989e12,
    peak_fp8=1979e12,
    hbm=3.35e12,
    nvlink=360e9,
    ib=42e9,
)
A100 = Device(
    name="A100-SXM-80GB",
    capacity_gib=79.2,
    peak_bf16=312e12,
    peak_fp8=0.0,
    hbm=2.04e12,
    nvlink=235e9,
    ib=21e9,
)
A100_40 = Device(
    name="A100-SXM-40GB",
    capacity_gib=39.4,
    peak_bf16=312e12,
    peak_fp8=0.0,
    hbm=1.56e12,
    nvlink=235e9,
    ib=21e9,
)
RTX4090 = Device(
    name="RTX-4090",
    capacity_gib=23.6,
    peak_bf16=165e12,
    peak_fp8=0.0,
    hbm=1.01e12,
    nvlink=20e9,
    ib=5e9,
)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A decoder of gated MLPs; `ffn` is one expert's width where there are experts."""

    layers: int
    d: int
    heads: int
    kv: int
    head_dim: int
    ffn: int
    vocab: int
    seq: int
    global_batch: int
    experts: int = 0
    top_k: int = 1
    tied: bool = False

    @property
    def attention_params(self) -> int:
        """Weights of one layer's attention."""
        return self.d * self.head_dim * 2 * (self.heads + self.kv)

    @property
    def ffn_params(self) -> int:
        """Weights of one MLP (of one expert)."""
        return 3 * self.d * self.ffn

    @property
    def embedding_params(self) -> int:
        """Weights of the input and output embeddings."""
        return self.vocab * self.d * (1 if self.tied else 2)

    @property
    def dense_params(self) -> int:
        """Weights outside experts."""
        mlp = 0 if self.experts else self.ffn_params
        return self.layers * (self.attention_params + mlp) + self.embedding_params

    @property
    def expert_params(self) -> int:
        """Weights of all experts of all layers."""
        return self.layers * self.experts * self.ffn_params


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What differs from one real cluster and code base to the next."""

    top: float = 0.72  # of the peak, for a large matrix product
    half_tokens: float = 900.0  # tokens at which a product reaches half of it
    half_width: float = 420.0
    launch_s: float = 6.5e-6
    kernels: float = 62.0  # per layer, forward and backward, eager
    passes: float = 52.0  # elementwise reads and writes per token and channel, forward + backward
    sync_s: float = 0.012  # host waits per micro-batch (.item(), logging)
    sample_s: float = 0.004  # preparing one sequence on one worker
    latency_s: float = 16e-6
    fragmentation: float = 0.07
    context_gib: float = 1.3
    activation: float = 1.0  # of the textbook's bytes
    imbalance: float = 0.3  # of experts, for few tokens an expert
    reduce_bytes: float = 4.0
    overlap: float = 0.7  # share of the backward that can hide communication
    late_stage: float = 0.0  # extra layers' worth on the last stage beside the logits
    pairs: tuple[tuple[str, Any, str, Any, float, float], ...] = ()  # log time, log memory
    singles: tuple[tuple[str, Any, float], ...] = ()  # log time
    extra: dict[str, float] = field(default_factory=dict)


DEFAULTS: dict[str, Any] = {
    "mbs": 1,
    "tp": 1,
    "pp": 1,
    "cp": 1,
    "ep": 1,
    "vpp": 1,
    "seq_par": False,
    "zero": 0,
    "ckpt": "none",
    "precision": "bf16",
    "attn": "flash",
    "compile": "off",
    "optimizer": "foreach",
    "bucket": 25,
    "overlap_reduce": True,
    "overlap_gather": False,
    "async_tp": False,
    "offload": "none",
    "workers": 4,
    "pin": True,
    "alloc": "default",
    "channels": 0,
    "algo": "auto",
    "tf32": True,
    "dispatcher": "alltoall",
    "cudnn_benchmark": False,
    "manual_gc": False,
}

PATCHES = (
    "fused_ce",
    "chunked_ce",
    "sdpa",
    "fused_norm",
    "fused_rope",
    "fused_mlp",
    "inplace_residual",
    "no_sync",
    "recompute_mlp",
    "offload_state",
    "drop_syncs",
    "prefetch",
    "fused_clip",
    "zero_grad_none",
    "bf16_reduce",
    "comm_overlap",
    "grouped_experts",
    "fewer_routing_syncs",
    "fused_permute",
    "overlap_dispatch",
    "delayed_scaling",
    "cuda_graph",
    "channels_last",
    "custom_attention",
    "empty_cache",
    "pad_vocab",
    "fuse_qkv",
)
DEFAULTS.update(dict.fromkeys(PATCHES, False))


@dataclass(frozen=True)
class Config:
    """A configuration in the simulator's own words, with what follows from it."""

    c: dict[str, Any]
    gpus: int
    model: Model

    def __getitem__(self, name: str):
        return self.c[name]

    @property
    def dp(self) -> int:
        """Data-parallel replicas of the dense weights."""
        return self.gpus // (self.c["tp"] * self.c["pp"] * self.c["cp"])

    @property
    def accum(self) -> int:
        """Micro-batches a step on each replica."""
        return self.model.global_batch // (self.dp * self.c["mbs"])

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch on one device, before tensor parallelism."""
        return self.c["mbs"] * self.model.seq / self.c["cp"]
