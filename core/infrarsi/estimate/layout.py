"""How a job is laid out on its devices, and its batch; consistent, with guesses named.

Degrees multiply to the devices (dp = devices / (tp pp cp)) and batches to the global batch
(global = micro x accumulation x dp). Where told values do not, devices and global batch win.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from infrarsi.estimate.fields import Fields


@dataclass(frozen=True, slots=True)
class Layout:
    """Parallel degrees, batch in sequences and sequence length in tokens.

    `accumulation` is micro-batches a step and pipeline; `shard_group` the ranks that ZeRO or
    FSDP shards over (data and context parallel ranks together, or the group told).
    """

    gpus: int
    tp: int
    pp: int
    vpp: int
    cp: int
    dp: int
    ep: int
    sequence_parallel: bool
    zero: int
    shard_group: int
    seq: int
    micro_batch: float
    accumulation: int
    global_batch: float
    assumed: tuple[str, ...]


def read_layout(told: Fields, domain: int, experts: int) -> Layout:
    """The layout told, completed.

    Raises:
        UnreadableJob: a number that is none.
    """
    assumed: list[str] = []
    tp, pp, cp = (told.count(name) or 1 for name in ("tp", "pp", "cp"))
    inner = tp * pp * cp
    gpus = told.count("n_gpus")
    if gpus is None:
        assumed.append("n_gpus")
        gpus = inner * (told.count("dp") or max(1, domain // inner if domain <= 8 else 1))
    dp = gpus // inner
    if dp < 1 or gpus % inner:
        dp = told.count("dp") or max(1, gpus // inner)
        assumed.append("dp")
    seq = told.count("seq_len")
    if seq is None:
        assumed.append("seq_len")
        seq = 2048
    micro, accumulation, batch = _batches(told, dp, pp, assumed)
    zero, group = _sharding(told, dp, cp, pp, assumed)
    sp = told.truth("sequence_parallel")
    return Layout(
        gpus=gpus,
        tp=tp,
        pp=pp,
        vpp=(told.count("vpp") or 1) if pp > 1 else 1,
        cp=cp,
        dp=dp,
        ep=_expert_degree(told, experts, gpus // pp if gpus >= pp else 1),
        sequence_parallel=tp > 1 if sp is None else sp and tp > 1,
        zero=zero,
        shard_group=group,
        seq=seq,
        micro_batch=micro,
        accumulation=accumulation,
        global_batch=batch,
        assumed=tuple(assumed),
    )


def _batches(told: Fields, dp: int, pp: int, assumed: list[str]) -> tuple[float, int, float]:
    micro = told.positive("micro_batch_seqs")
    steps, batch = told.count("grad_accum"), told.positive("global_batch_seqs")
    if micro is None:
        assumed.append("micro_batch_seqs")
        if batch is None:
            micro = 1.0
        elif steps is not None:
            micro = max(batch / (dp * steps), 1e-3)
        else:
            each = batch / dp
            most = each / (2 * pp) if pp > 1 else each if each <= 8 else 1.0
            micro = each if each <= 1 else max(1.0, float(int(most)))
    if steps is None or batch is not None:
        steps = max(1, round(batch / (micro * dp))) if batch else steps or (1 if pp == 1 else pp)
    if batch is None:
        assumed.append("global_batch_seqs")
        batch = micro * dp * steps
    return micro, steps, batch


def _sharding(told: Fields, dp: int, cp: int, pp: int, assumed: list[str]) -> tuple[int, int]:
    words = told.word("sharding")
    stage = told.number("zero_stage")
    if stage is None:
        stage = _stage_of(words)
    if stage is None:
        assumed.append("zero_stage")
        stage = 1 if dp > 1 else 0
    ranks = dp * cp
    group = _group_of(words)
    return int(min(stage, 3)), min(group, ranks) if group else ranks


def _stage_of(words: str) -> int | None:
    if not words:
        return None
    for stage in (3, 2, 1, 0):
        if f"zero-{stage}" in words or f"zero{stage}" in words or f"stage{stage}" in words:
            return stage
    if "shard_grad_op" in words:
        return 2
    if "fsdp" in words or "full_shard" in words:
        return 3
    if "dist" in words and "optimizer" in words:
        return 1
    return 0 if "ddp" in words or "none" in words or "single" in words else None


def _group_of(words: str) -> int | None:
    """Ranks told behind `group`, or behind `fsdp` as meshes write it: `FSDP2 group 8`, `FSDP 4`."""
    parts = words.replace("(", " ").replace(")", " ").split()
    for before, number in pairwise(parts):
        if before in {"group", "fsdp"} and number.isdigit():
            return int(number)
    return None


def _expert_degree(told: Fields, experts: int, ranks: int) -> int:
    if experts < 2:
        return 1
    degree = told.count("ep") or 1
    return degree if ranks % degree == 0 else max(1, gcd(degree, ranks))
