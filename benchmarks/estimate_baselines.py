"""Estimators that people use today, written again from their published formulas.

Memory: DeepSpeed's `estimate_zero{2,3}_model_states_mem_needs` and `accelerate estimate-memory`
(training with Adam). Time and memory: "6 N plus": 6 FLOPs a parameter and token at 40 % of the
16-bit peak; 18 bytes a parameter over the layout and 34 s b h bytes a layer (Korthikanti et al.).
"""

from infrarsi.estimate import Job

GIB = 1 << 30
USUAL_MFU = 0.4


def deepspeed_gib(job: Job) -> float:
    """ZeRO 2: 4 P + 16 P / n; ZeRO 3: 4 x largest layer + 18 P / n; no offload."""
    layout, model = job.layout, job.model
    params = model.params / (layout.tp * layout.pp)
    if layout.zero == 3:
        largest = max(model.embedding_params, model.block_params / model.layers) / layout.tp
        return (4 * largest + 18 * params / layout.dp) / GIB
    return (4 * params + 16 * params / layout.dp) / GIB


def accelerate_gib(job: Job) -> float:
    """Parameters x bytes of the type x 4 (weights, gradients and two moments)."""
    each = 4 if job.modes.precision in {"fp32", "tf32"} else job.modes.weight_bytes
    return job.model.params * each * 4 / GIB


def six_n_gib(job: Job) -> float:
    """18 bytes a parameter, the optimizer's 12 shared by ZeRO 1, and 34 s b h a layer."""
    layout, model = job.layout, job.model
    params = model.params / (layout.tp * layout.pp)
    shares = [layout.dp if layout.zero >= stage else 1 for stage in (1, 2, 3)]
    static = 12 * params / shares[0] + 4 * params / shares[1] + 2 * params / shares[2]
    layers = model.layers / layout.pp * min(layout.pp, layout.accumulation)
    kept = 2 if job.modes.checkpoint == "full" else 34 / layout.tp
    return (static + kept * job.micro_tokens * model.width * layers) / GIB


def six_n_s(job: Job) -> float:
    """6 FLOPs an active parameter and token at 40 % of the peak."""
    flops = 6 * job.model.active_params * job.step_tokens
    return flops / (job.layout.gpus * job.machine.peak_16bit * USUAL_MFU)
