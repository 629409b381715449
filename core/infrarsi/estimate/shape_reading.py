"""From what is told of a model to its whole `Shape`; what had to be guessed is named in it."""

from dataclasses import dataclass

from infrarsi.estimate.fields import Fields, UnreadableJob
from infrarsi.estimate.shape import Shape, counted, depth_and_width, size_of

_VOCAB_SMALL, _VOCAB_LARGE, _LARGE_MODEL = 50304, 100352, 3e9
_ACTIVE_SHARE = 1 / 16
"""Share of the routed experts that a token uses, where neither number is told."""


def read_shape(told: Fields) -> Shape:
    """The model's shape.

    Raises:
        UnreadableJob: neither parameters nor a shape are told, nor a name with a size in it.
    """
    assumed: list[str] = []
    layers, width = told.count("n_layers"), told.count("d_model")
    total, active = _told_counts(told, layers is not None and width is not None, assumed)
    if total is None and (layers is None or width is None):
        raise UnreadableJob(
            "The model's size is unknown.", "Give n_params, or n_layers and d_model."
        )
    experts, top_k = told.count("n_experts") or 0, told.count("topk") or 0
    sparse = active is not None and total is not None and active < 0.9 * total
    is_moe = experts > 1 or told.word("arch") == "moe" or sparse
    block = _read_block(told, total or 0, active, is_moe, assumed)
    ffn_expert, shared = told.count("d_ffn_expert") or 0, told.count("n_shared_experts") or 0
    routed = 0.0
    if is_moe:
        experts, top_k = _expert_numbers(experts, top_k, assumed)
        ffn_expert = ffn_expert or block.ffn
        one = block.layers * block.products * block.width * ffn_expert
        outside = block.params(0) + shared * one
        total, active, routed = _moe_counts(total, active, experts, top_k, outside, one)
        routed = _told_routed(told, total, experts, routed)
    else:
        experts = top_k = 0
        total = total or block.params(block.ffn)
        active = active or total
    return Shape(
        layers=block.layers, width=block.width, heads=block.heads, kv_heads=block.kv_heads,
        head_dim=block.head_dim, ffn=block.ffn, vocab=block.vocab, gated=block.gated,
        tied=block.tied, experts=experts, top_k=top_k, ffn_expert=ffn_expert,
        shared_experts=shared, params=total, active_params=min(active, total),
        expert_params=routed, assumed=tuple(assumed),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Block:
    """The dense part's shape."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool
    tied: bool

    @property
    def products(self) -> int:
        """Matrices of a feed-forward layer."""
        return 3 if self.gated else 2

    def params(self, ffn: int) -> float:
        """All parameters with feed-forward layers of that width."""
        tables = self.vocab * self.width * (1 if self.tied else 2)
        attention, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return counted(self.layers, self.width, attention, kv, ffn, self.gated, tables)


def _read_block(
    told: Fields, total: float, active: float | None, is_moe: bool, assumed: list[str]
) -> _Block:
    layers, width = told.count("n_layers"), told.count("d_model")
    vocab = told.count("vocab_size")
    if vocab is None:
        vocab = _VOCAB_LARGE if total > _LARGE_MODEL else _VOCAB_SMALL
        assumed.append("vocab_size")
    if layers is None or width is None:
        assumed += [n for n, v in (("n_layers", layers), ("d_model", width)) if v is None]
        layers, width = _guess_depth(total, active, is_moe, layers, width, vocab)
    heads = told.count("n_heads") or max(1, round(width / (told.count("d_head") or 128)))
    kv_heads = told.count("n_kv_heads") or heads
    ffn, gated = told.count("d_ffn"), told.truth("gated_mlp")
    if gated is None:
        gated = _looks_gated(ffn, width, kv_heads < heads)
        assumed.append("gated_mlp")
    tied = told.truth("tied_embeddings")
    if tied is None:
        tied = not gated
        assumed.append("tied_embeddings")
    return _Block(
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=told.count("d_head") or max(1, width // heads),
        ffn=ffn or (round(8 * width / 3) if gated else 4 * width),
        vocab=vocab,
        gated=gated,
        tied=tied,
    )


def _looks_gated(ffn: int | None, width: int, grouped: bool) -> bool:
    """Gated layers are not four widths wide; without a width, models since 2023 are gated."""
    if ffn is None:
        return width >= 2048
    return ffn % width != 0 or (ffn != 4 * width and grouped)


def _told_counts(
    told: Fields, shaped: bool, assumed: list[str]
) -> tuple[float | None, float | None]:
    dense, routed = told.positive("params_dense"), told.number("params_expert")
    total, active = told.positive("n_params"), told.positive("n_active_params")
    if dense is not None:
        experts = told.count("n_experts") or 0
        routed = _whole_routed(routed or 0.0, dense, total, experts)
        share = (told.count("topk") or 1) / experts if experts else 0.0
        return dense + routed, dense + routed * share
    if total is None and not shaped:
        total, named = size_of(told.text("model"))
        active = active or named
        if total is not None:
            assumed.append("n_params")
    return total, active


def _whole_routed(routed: float, dense: float, total: float | None, experts: int) -> float:
    """`params_expert` of all experts; of one where only that agrees with `n_params`."""
    if total is None or experts < 2:
        return routed
    return min((routed, routed * experts), key=lambda r: abs(dense + r - total))


def _told_routed(told: Fields, total: float, experts: int, otherwise: float) -> float:
    dense = told.positive("params_dense")
    return otherwise if dense is None else max(total - dense, 0.0)


def _expert_numbers(experts: int, top_k: int, assumed: list[str]) -> tuple[int, int]:
    if experts < 2:
        assumed.append("n_experts")
        experts = 64
    if top_k < 1:
        assumed.append("topk")
        top_k = max(1, round(experts * _ACTIVE_SHARE))
    return experts, top_k


def _moe_counts(
    total: float | None,
    active: float | None,
    experts: int,
    top_k: int,
    outside: float,
    one: float,
) -> tuple[float, float, float]:
    """Total, active and routed parameters; `one` are those of one expert in every layer."""
    if total is None:
        return outside + experts * one, outside + top_k * one, experts * one
    if active is not None and experts > top_k and active < total:
        each = (total - active) / (experts - top_k)
        return total, active, min(each * experts, total)
    routed = min(experts * one, 0.97 * total)
    return total, active or total - routed * (1 - top_k / experts), routed


def _guess_depth(
    total: float,
    active: float | None,
    is_moe: bool,
    layers: int | None,
    width: int | None,
    vocab: int,
) -> tuple[int, int]:
    """A mixture is as deep and wide as a dense model of a third of its size, at most."""
    size = total
    if is_moe:
        size = max(active or 0.0, total / 3) if active is None else max(3 * active, total / 8)
        size = min(size, total)
    guess = depth_and_width(size, layers, width)
    return depth_and_width(max(size - 2 * vocab * guess[1], 0.5 * size), layers, width)
