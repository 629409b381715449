"""FLOPs of a step: the model's by one definition, and what one device really computes.

Model FLOPs a token: 6 N + 6 L a S, with N the active parameters that multiply, L layers, a the
attention's width and S the sequence length (causal half; Kaplan et al. 2020, arXiv 2001.08361).
"""

from dataclasses import dataclass

from infrarsi.estimate.job import Job
from infrarsi.estimate.machine import Machine

_RECOMPUTED = {"full": 1.0, "offload": 1.0, "remat": 0.7, "selective": 0.0, "none": 0.0, "": 0.0}
"""Share of the layers' forward products done again, by checkpointing class."""
_ATTENTION_RECOMPUTED = {"full": 1.0, "offload": 1.0, "remat": 1.0, "selective": 1.0}


@dataclass(frozen=True, slots=True)
class FlopCounts:
    """`model_per_token` by the definition of MFU; the others are one device's in one step.

    `device` is everything: the layers' products, those of the head, attention, all again.
    """

    model_per_token: float
    device: float
    device_linear: float
    device_head: float
    recompute: float


def flop_counts(job: Job) -> FlopCounts:
    """FLOPs of the job; `flops_per_token` as told wins for the model's."""
    model = job.model
    linear, attention = 2 * model.matmul_params, attention_flops(job)
    per_token = job.flops_per_token or 3 * (linear + attention)
    scale = per_token / (3 * (linear + attention))
    passes = 2 + min(1.0, job.modes.trainable_share)
    head = 2 * model.embedding_params
    layers = max(linear - head, 0.0)
    checkpoint = job.modes.checkpoint
    again = _RECOMPUTED[checkpoint] * layers
    attention_again = _ATTENTION_RECOMPUTED.get(checkpoint, 0.0) * attention
    tokens = job.step_tokens / job.layout.gpus * scale
    return FlopCounts(
        model_per_token=per_token,
        device=tokens * (passes * linear + 3 * attention + again + attention_again),
        device_linear=tokens * (passes * layers + again),
        device_head=tokens * passes * (linear - layers),
        recompute=tokens * (again + attention_again),
    )


def attention_flops(job: Job) -> float:
    """Forward FLOPs a token of the causal score and value products."""
    model = job.model
    return 2.0 * model.layers * model.heads * model.head_dim * job.layout.seq


def peak_of(machine: Machine, precision: str) -> tuple[float, float]:
    """Peaks of the linear layers and of the rest at that precision, FLOP/s."""
    sixteen = machine.peak_16bit
    linear = {
        "fp32": machine.peak_fp32,
        "tf32": machine.peak_tf32,
        "fp8": machine.peak_fp8,
        "mxfp8": machine.peak_fp8,
        "nvfp4": machine.peak_fp4,
    }.get(precision, sixteen)
    return linear, min(linear, sixteen)
