"""Bytes that one device sends in a step and the seconds they take on their link at its rate.

Ring algorithms: an all-reduce of B bytes over n ranks sends 2 B (n - 1) / n a rank, a gather or
scatter half of that. Groups nest as Megatron and the others order them: tensor and context
parallel ranks are neighbours, then data parallel, pipeline outermost. A group that leaves the
fast domain shares the network ports of its ranks there.
"""

from dataclasses import dataclass

from infrarsi.estimate.job import Job


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes a device sends in one step, on the `link` or the `network`, and for how long."""

    bytes: float
    seconds: float
    link: str


def volumes(job: Job) -> dict[str, Volume]:
    """One volume for each kind of parallelism that the layout uses."""
    layout, model = job.layout, job.model
    token_bytes = 2.0 * job.micro_tokens * model.width
    layers = model.layers / layout.pp
    micro, inner = layout.accumulation, layout.tp * layout.cp
    found: dict[str, Volume] = {}
    if layout.tp > 1:
        sent = 8 * _share(layout.tp) * token_bytes * layers * micro
        found["tp"] = _on(job, sent, layout.tp, 1)
    if layout.cp > 1:
        kept = 4.0 * job.micro_tokens * model.kv_heads * model.head_dim / layout.tp
        found["cp"] = _on(job, 3 * kept * (layout.cp - 1) * layers * micro, inner, layout.tp)
    if layout.ep > 1:
        routed = token_bytes * model.top_k / layout.tp
        sent = 4 * routed * _share(layout.ep) * layers * micro
        found["ep"] = _on(job, sent, layout.ep * layout.tp, layout.tp)
    if layout.pp > 1:
        split = layout.tp if layout.sequence_parallel else 1
        found["pp"] = _on(job, 2 * token_bytes / split * layout.vpp * micro, layout.gpus, inner)
    if layout.shard_group > 1 or layout.dp > 1:
        group = layout.dp * layout.cp
        found["dp"] = _on(job, _data_parallel(job), group * layout.tp, inner)
    return found


def device_params(job: Job) -> float:
    """Parameters of one device before ZeRO: an even share of the pipeline's."""
    model, layout = job.model, job.layout
    dense = (model.params - model.expert_params) / layout.tp
    routed = model.expert_params / max(layout.ep, 1)
    routed /= layout.tp if layout.ep == 1 else 1
    return (dense + routed) / layout.pp


def _data_parallel(job: Job) -> float:
    """Gradients once a step, and weights once (ZeRO 0 to 2) or twice a micro-batch (ZeRO 3)."""
    layout, modes = job.layout, job.modes
    params = device_params(job)
    trained = params * modes.trainable_share
    ranks = max(layout.shard_group, layout.dp)
    once = trained * (max(modes.grad_bytes, 2.0) + 2.0)
    if layout.zero < 3:
        return once * _share(ranks)
    gathers = 2 * params * min(2.0, modes.weight_bytes) * layout.accumulation
    return (gathers + trained * max(modes.grad_bytes, 2.0)) * _share(ranks)


def _share(ranks: int) -> float:
    return (ranks - 1) / ranks


def _on(job: Job, sent: float, span: int, stride: int) -> Volume:
    """On the link if the group's `span` fits the domain; else on the ports of its ranks there."""
    machine = job.machine
    if min(span, job.layout.gpus) <= machine.domain:
        return Volume(sent, sent / machine.link, "link")
    ranks_there = max(1, machine.domain // stride)
    rate = min(machine.link, machine.network * ranks_there)
    return Volume(sent, sent / rate, "network")
