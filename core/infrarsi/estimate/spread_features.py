"""What makes an estimate less sure: features of the log scale of its error."""

import math

from infrarsi.estimate.job import Job
from infrarsi.estimate.parts import Features


def time_spread_features(job: Job, terms: dict[str, float]) -> Features:
    """Unknowns, far groups, and time that is not spent on products (`terms`) widen a step."""
    layout, model = job.layout, job.model
    domains = max(1.0, layout.gpus / max(job.machine.domain, 1))
    products = sum(terms.get(name, 0.0) for name in ("linear", "head", "attention"))
    return _common(job) | {
        "overhead": 1 - products / sum(terms.values()),
        "domains": math.log2(domains) / 6,
        "pipeline": math.log2(layout.pp) / 4,
        "split_far": float(layout.tp > job.machine.domain),
        "tiny": float(model.width < 1536),
    }


def memory_spread_features(job: Job) -> Features:
    """Unknowns, full recomputation, tiny models, mixtures and adapters widen a peak."""
    return _common(job) | {
        "pipeline": math.log2(job.layout.pp) / 4,
        "checkpointed": float(job.modes.checkpoint in {"full", "remat", "offload"}),
        "tiny": float(job.model.width < 1536),
        "offload": float(job.modes.offload_activations or job.modes.offload_optimizer),
    }


def _common(job: Job) -> Features:
    assumed = set(job.assumed)
    return {
        "one": 1.0,
        "mixture": float(job.model.experts > 0),
        "adapter": float(job.modes.adapter),
        "checkpoint_unknown": float("act_ckpt_class" in assumed),
        "batch_unknown": float(bool(assumed & {"micro_batch_seqs", "seq_len"})),
        "shape_unknown": float(bool(assumed & {"n_layers", "d_model", "n_params"})),
    }
