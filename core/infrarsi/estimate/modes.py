"""What a job computes and keeps: task, precision, optimizer, checkpointing, offload, attention."""

from dataclasses import dataclass

from infrarsi.estimate.fields import Fields

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4")
_ADAPTER_SHARE = 0.004
"""Trainable share of a usual adapter: rank 8 to 64 on the attention's projections."""
CHECKPOINTS = ("none", "selective", "remat", "offload", "full")


@dataclass(frozen=True, slots=True)
class Modes:
    """How numbers are kept and what is kept of the forward.

    Bytes are per parameter: `weight_bytes` as the forward uses it, `grad_bytes`, and
    `optimizer_bytes` with a master copy where there is one. `checkpoint` is empty when unknown.
    `trainable_share` is of the parameters: 1 except for adapters. `family` is the framework's.
    """

    task: str
    precision: str
    weight_bytes: float
    table_bytes: float
    grad_bytes: float
    optimizer_bytes: float
    trainable_share: float
    checkpoint: str
    offload_activations: bool
    offload_optimizer: bool
    fused_attention: bool
    compiled: bool
    family: str
    basis: str
    assumed: tuple[str, ...]

    @property
    def eager(self) -> bool:
        """Whether norms and rotations keep copies of their own: no compiler, no fused layers."""
        return not self.compiled and self.family not in {"megatron", "jax", "foundry", "internevo"}

    @property
    def adapter(self) -> bool:
        """Whether the base is frozen."""
        return self.task not in {"pretrain", "full_ft"}


def read_modes(told: Fields) -> Modes:
    """The modes told, completed."""
    assumed: list[str] = []
    task = told.word("task") or "pretrain"
    precision = _precision(told, assumed)
    family = family_of(told.word("framework"))
    words = " ".join(map(told.word, ("precision", "optimizer", "sharding", "framework")))
    weight, grad, state = _bytes(precision, family, task, words)
    adapter = task not in {"pretrain", "full_ft"}
    total, trainable = told.positive("n_params"), told.positive("n_trainable_params")
    share = 1.0
    if adapter:
        share = min(1.0, trainable / total) if total and trainable else _ADAPTER_SHARE
    checkpoint = _checkpoint(told)
    if not checkpoint:
        assumed.append("act_ckpt_class")
    attention = told.word("attn_impl")
    return Modes(
        task=task,
        precision=precision,
        weight_bytes=_quantised_bytes(words, task) or weight,
        table_bytes=weight,
        grad_bytes=grad,
        optimizer_bytes=state,
        trainable_share=share,
        checkpoint=checkpoint,
        offload_activations=bool(told.truth("act_offload")) or checkpoint == "offload",
        offload_optimizer="offload" in words,
        fused_attention=not any(
            word in attention for word in ("no flash", "eager", "unfused", "standard", "local")
        ),
        compiled=told.word("compile") in {"xla", "thunder"} or bool(told.truth("compile")),
        family=family,
        basis=told.word("mem_basis"),
        assumed=tuple(assumed),
    )


def family_of(framework: str) -> str:
    """One word for frameworks that keep memory alike; empty when unknown."""
    for family, words in _FAMILIES:
        if any(word in framework for word in words):
            return family
    return "" if not framework else "other"


_FAMILIES = (
    ("deepspeed", ("megatron-deepspeed", "deepspeed 3d")),
    ("hf", ("trainer", "transformers", "peft", "xtuner", "unsloth", "halo", "swift")),
    ("nanotron", ("nanotron",)),
    ("titan", ("torchtitan", "automodel", "fms-fsdp")),
    ("foundry", ("composer", "foundry")),
    ("torchtune", ("torchtune",)),
    ("litgpt", ("litgpt", "thunder", "lightning")),
    ("jax", ("jax", "maxtext", "pax")),
    ("internevo", ("internevo", "internlm")),
    ("megatron", ("megatron", "nemo", "primus", "flagscale", "oneflow", "paddle", "colossal")),
)


def _precision(told: Fields, assumed: list[str]) -> str:
    words = (told.word("precision_class") or told.word("precision")).replace("bfloat16", "bf16")
    if "quantized" in words or told.word("task") == "qlora":
        return "bf16"
    for name in ("mxfp8", "nvfp4", "fp8", "tf32", "bf16", "fp16", "fp32"):
        if name in words:
            return name
    if "float16" in words or "amp" in words:
        return "fp16"
    if "float32" in words:
        return "fp32"
    assumed.append("precision_class")
    return "bf16"


def _bytes(precision: str, family: str, task: str, words: str) -> tuple[float, float, float]:
    if precision in {"fp32", "tf32"}:
        return 4.0, 4.0, _moments(words, 8.0)
    master = 4.0
    grad = 4.0 if family in {"megatron", "nanotron", "deepspeed"} else 2.0
    if family == "megatron" and ("bridge" in words or "nemo" in words):
        grad = 2.0
    if family == "internevo" or (family != "megatron" and "fp32 grad" in words):
        grad = 6.0
    moments = _moments(words, 8.0)
    if family == "jax" and "true" not in words:
        return 4.0, 2.0, moments
    if family in {"titan", "foundry"}:
        return 4.0, 4.0, moments
    if _pure(family, words) and task in {"pretrain", "full_ft"}:
        master, grad, moments = 0.0, 2.0, moments / 2
    if "in backward" in words:
        grad = 0.0
    if family == "torchtune" and task == "full_ft" and "single" in words and "adam" not in words:
        return 2.0, 0.0, 0.2
    return 2.0, grad, master + moments


def _pure(family: str, words: str) -> bool:
    """Whether parameters live in 16 bits alone, so that the optimizer's moments do too."""
    if "amp" in words or "master" in words or "mixed" in words:
        return False
    alone = not any(word in words for word in ("zero-", "zero stage", "deepspeed", "fsdp"))
    return "true" in words or family in {"torchtune", "litgpt"} or (family == "hf" and alone)


def _quantised_bytes(words: str, task: str) -> float | None:
    """Bytes of a quantised frozen weight: 4 or 8 bits, and a scale for each 64."""
    if task in {"pretrain", "full_ft"}:
        return None
    if any(word in words for word in ("nf4", "int4", "bnb.fp4", "4bit")):
        return 0.52 if "dq" in words else 0.56
    if "int8" in words or "8bit" in words:
        return 1.06
    return 0.56 if task == "qlora" else None


def _moments(words: str, usual: float) -> float:
    if "8-bit" in words or "8bit" in words:
        return 2.0
    if "galore" in words:
        return usual / 8
    if "muon" in words or "lion" in words:
        return usual / 2 if "adam" not in words else usual
    return 0.0 if "sgd" in words else usual


def _checkpoint(told: Fields) -> str:
    words = told.word("act_ckpt_class") or told.word("act_ckpt")
    for name in ("assumed_none", "none", "selective", "remat", "offload", "full"):
        if name in words:
            return name.removeprefix("assumed_")
    return ""
