"""Peak memory of one device by term, bytes: first or last stage of its pipeline.

Activations are counted tensor by tensor (Korthikanti et al. 2022, arXiv 2205.05198, extended to
gated and routed feed-forward layers and to fused attention). Leaves out the allocator's
fragmentation, workspaces and the device's context: the calibration adds them.
"""

import math
from dataclasses import dataclass

from infrarsi.estimate.job import Job

TERMS = (
    "parameters",
    "gradients",
    "optimizer_state",
    "activations",
    "working_layer",
    "logits",
    "communication_buffers",
)
_KEPT = {"none": 1.0, "selective": 0.4, "remat": 0.05, "full": 0.0, "offload": 0.0, "": 1.0}
"""Share of a layer's activations kept besides its input, by checkpointing class."""

_LOGIT_BYTES = {
    "hf": 16.0,
    "nanotron": 16.0,
    "megatron": 6.0,
    "deepspeed": 6.0,
    "torchtune": 3.0,
    "jax": 1.0,
}


@dataclass(frozen=True, slots=True)
class Held:
    """Parameters that a stage's device holds before ZeRO: dense layers, experts, tables."""

    dense: float
    routed: float
    tables: float


def stage_terms(job: Job, first: bool) -> dict[str, float]:
    """The terms of the first or the last stage; with one stage, of the only one."""
    held = held_params(job, first)
    static = _static(job, held)
    layers = stage_layers(job)
    in_flight = _in_flight(job, first)
    kept, layer = _layer_activations(job)
    only = job.layout.pp == 1
    embedded = 2.0 * job.micro_tokens * job.model.width if first else 0.0
    return static | {
        "activations": kept * layers * in_flight + embedded,
        "working_layer": layer,
        "logits": logit_bytes(job) if only or not first else 0.0,
        "communication_buffers": _buffers(job, held),
    }


def stage_layers(job: Job) -> int:
    """Layers of the fullest stage: an even share, rounded up.

    nanotron cuts the embedding, the layers and the head by cost: about two layers' worth more.
    """
    shared = job.model.layers + (2 if job.modes.family == "nanotron" and job.layout.pp > 1 else 0)
    return math.ceil(shared / job.layout.pp)


def held_params(job: Job, first: bool) -> Held:
    """Parameters of a stage's device; tables on the first and the last stage."""
    model, layout = job.model, job.layout
    tables = model.embedding_params / layout.tp
    if layout.pp == 1 and not model.tied:
        tables *= 2
    ranks = layout.ep if layout.ep > 1 else layout.tp
    share = stage_layers(job) / model.layers
    return Held(
        dense=model.block_params * share / layout.tp,
        routed=model.expert_params * share / ranks,
        tables=tables,
    )


def _static(job: Job, held: Held) -> dict[str, float]:
    modes, layout = job.modes, job.layout
    group = max(1, layout.shard_group)
    expert_group = max(1, layout.shard_group * layout.tp // max(layout.ep, 1))
    expert_group = expert_group if layout.ep > 1 else group

    def sharded(stage: int, dense: float, routed: float) -> float:
        if layout.zero < stage:
            return dense + routed
        return dense / group + routed / expert_group

    weights = held.dense * modes.weight_bytes + held.tables * modes.table_bytes
    trained = modes.trainable_share
    dense, routed = trained * (held.dense + held.tables), trained * held.routed
    grads, state = modes.grad_bytes, modes.optimizer_bytes
    if modes.adapter:
        grads, state = 4.0, 12.0
    optimizer = sharded(1, dense * state, routed * state)
    return {
        "parameters": sharded(3, weights, held.routed * modes.weight_bytes),
        "gradients": sharded(2, dense * grads, routed * grads),
        "optimizer_state": 0.0 if modes.offload_optimizer else optimizer,
    }


def _in_flight(job: Job, first: bool) -> float:
    """Micro-batches whose activations a stage keeps: p on the first, 1 on the last (1F1B).

    Interleaving keeps (p - 1) / (p v) of a stage more (Narayanan et al. 2021).
    """
    layout = job.layout
    if layout.pp == 1:
        return 1.0
    if not first:
        return 1.0 if layout.vpp == 1 else min(1 + (layout.pp - 1) / layout.vpp / layout.pp, 2.0)
    extra = (layout.pp - 1) / (layout.pp * layout.vpp) if layout.vpp > 1 else 0.0
    return min(layout.pp * (1 + extra), float(layout.accumulation))


def _layer_activations(job: Job) -> tuple[float, float]:
    """Bytes that a micro-batch keeps in one layer, and those alive while one layer is worked on."""
    layout, modes, model = job.layout, job.modes, job.model
    split = layout.tp if layout.sequence_parallel else 1
    tokens = job.micro_tokens
    entry = 2.0 * tokens * model.width / split
    whole = layer_bytes(job)
    checkpoint = modes.checkpoint
    kept = entry + _KEPT[checkpoint] * (whole - entry)
    if checkpoint == "selective" and not modes.fused_attention:
        kept = whole - square_bytes(job)
    if modes.offload_activations:
        kept = 0.1 * kept
    working = whole if kept < whole else 0.0
    return kept, working


def layer_bytes(job: Job) -> float:
    """All that one layer keeps of a micro-batch for its backward, 16-bit values."""
    layout, model = job.layout, job.model
    split = layout.tp if layout.sequence_parallel else 1
    width, attention = model.width, model.heads * model.head_dim
    kv = model.kv_heads * model.head_dim
    copies = 2.0 if job.modes.eager else 1.0
    norms = 8.0 * copies * width / split
    projections = 2.0 * ((1 + copies) * attention + (1 + copies) * kv) / layout.tp
    wide = (6.0 if model.gated else 4.0) / layout.tp
    if model.experts:
        ranks = 1 if layout.ep > 1 else layout.tp
        active = model.top_k * model.ffn_expert * (6.0 if model.gated else 4.0) / ranks
        moved = 4.0 * width * model.top_k / split
        shared = model.shared_experts * model.ffn_expert * wide
        feed_forward = (active + moved / 1.0) / (layout.tp if layout.ep > 1 else 1) + shared
    else:
        feed_forward = model.ffn * wide
    masks = 0.0 if model.gated else 2.0 * width / split
    return job.micro_tokens * (norms + projections + feed_forward + masks) + square_bytes(job)


def square_bytes(job: Job) -> float:
    """Scores, their softmax and its mask where attention is not fused: 5 bytes a score."""
    if job.modes.fused_attention:
        return 0.0
    layout = job.layout
    return 5.0 * job.micro_tokens * layout.seq * job.model.heads / layout.tp


def logit_bytes(job: Job) -> float:
    """Logits, their 32-bit copy, softmax and gradients: bytes each by framework, over tensor ranks.

    Eager frameworks upcast, shift and copy; Megatron's loss is vocabulary parallel and fused; XLA
    and chunked losses never hold them whole.
    """
    each = _LOGIT_BYTES.get(job.modes.family, 12.0)
    return each * job.micro_tokens * job.model.vocab / job.layout.tp


def _buffers(job: Job, held: Held) -> float:
    """ZeRO 3: two layers gathered and a table, the whole stage in a pipeline; else one bucket."""
    layout, modes = job.layout, job.modes
    if layout.shard_group <= 1:
        return 0.0
    if layout.zero >= 3:
        layers = max(1.0, job.model.layers / layout.pp)
        whole = (held.dense + held.routed) * min(2.0, modes.weight_bytes)
        tables = held.tables * min(2.0, modes.table_bytes)
        return whole + tables if layout.pp > 1 else 2 * whole / layers + tables / 2
    trained = (held.dense + held.tables + held.routed) * modes.trainable_share
    return min(0.5e9, trained) * 2.0 if layout.zero else 0.0
