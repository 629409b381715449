"""How public trainers spell the contract's words. Used where control flow does not tell."""

import functools
import re

ALIASES: dict[str, tuple[str, ...]] = {
    "micro_batch": (
        "micro_batch",
        "micro_batch_size",
        "microbatch",
        "microbatch_size",
        "mbs",
        "micro_bs",
        "device_batch_size",
        "device_batch",
        "per_device_batch_size",
        "per_device_train_batch_size",
        "train_micro_batch_size_per_gpu",
        "batch_size_per_gpu",
        "local_batch_size",
        "batch_size",
        "train_batch_size",
        "batch",
        "bs",
        "b",
    ),
    "accumulation": (
        "accumulation",
        "accumulation_steps",
        "accum",
        "accum_steps",
        "n_accum",
        "grad_accum",
        "grad_accum_steps",
        "grad_accumulation",
        "grad_acc_steps",
        "gradient_accumulation",
        "gradient_accumulation_steps",
        "gradient_accumulation_iters",
        "accumulate_grad_batches",
        "n_micro",
        "n_micro_batches",
        "num_micro_batches",
        "micro_steps",
    ),
    "global_batch": (
        "global_batch",
        "global_batch_size",
        "total_batch",
        "total_batch_size",
        "effective_batch",
        "effective_batch_size",
        "batch_per_step",
        "rows_per_step",
        "sequences_per_step",
        "num_tokens_per_train_step",
        "tokens_per_step",
        "tokens_per_batch",
        "train_batch_size",
    ),
    "seq_len": (
        "seq_len",
        "seq_length",
        "sequence_length",
        "sequence_len",
        "block_size",
        "max_seq_len",
        "max_seq_length",
        "context_length",
        "context_len",
        "max_context_length",
        "train_max_seq_len",
        "context",
        "ctx_len",
        "n_ctx",
        "max_position_embeddings",
        "seq",
        "max_length",
        "t",
    ),
    "updates": (
        "max_iters",
        "num_iterations",
        "max_steps",
        "max_train_steps",
        "total_train_steps",
        "num_steps",
        "n_steps",
        "steps",
        "train_steps",
        "train_iters",
        "iterations",
        "updates",
    ),
    "clip": (
        "grad_clip",
        "grad_norm_clip",
        "max_grad_norm",
        "max_norm",
        "clip_grad",
        "clip_grad_norm",
        "gradient_clipping",
        "gradient_clip_val",
        "clip",
    ),
    "lr": ("lr", "learning_rate", "max_lr", "peak_lr", "base_lr"),
    "weight_decay": ("weight_decay", "wd"),
    "seed": ("seed", "random_seed"),
}
"""Spellings by canonical name, the surest first, in lower case with underscores."""


@functools.lru_cache(maxsize=8192)
def normalise(name: str) -> str:
    """`--Micro-Batch` and `MICRO_BATCH` alike as `micro_batch`; of a dotted name the last part."""
    last = name.rpartition(".")[2].lstrip("-").replace("-", "_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()


def rank_alias(canonical: str, name: str) -> int | None:
    """How sure a spelling is for a canonical name (0 is surest), None where it is not one."""
    spellings = ALIASES.get(canonical, ())
    spelled = normalise(name)
    return spellings.index(spelled) if spelled in spellings else None
