"""The model's shape and its parameter counts, whole or inferred from what is told of it.

Leaves out biases, norms and positions (under 0.1 % of a model of today's width) and layers that
differ from each other, except that counts told by the user win over those of the shape.
"""

import re
from dataclasses import dataclass

ASPECT = 100.0
"""Width over depth of published decoders: 64 (GPT-2) to 128 (7B), 102 at 70B."""

_SIZE = re.compile(r"(?<![\w.])(?:\d+x)?[ae]?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_WORDS = re.compile(r"[^0-9a-z.]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder. Counts are of the whole model; `expert_params` are the routed experts' alone."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool
    tied: bool
    experts: int
    top_k: int
    ffn_expert: int
    shared_experts: int
    params: float
    active_params: float
    expert_params: float
    assumed: tuple[str, ...]

    @property
    def embedding_params(self) -> float:
        """One table of the vocabulary."""
        return float(self.vocab * self.width)

    @property
    def block_params(self) -> float:
        """Parameters outside the vocabulary's tables and the routed experts."""
        tables = self.embedding_params * (1 if self.tied else 2)
        dense = self.params - self.expert_params
        return max(dense - tables, 0.2 * dense)

    @property
    def matmul_params(self) -> float:
        """Active parameters that multiply: without the input embedding unless it is tied."""
        spared = 0.0 if self.tied else self.embedding_params
        return max(self.active_params - spared, 0.5 * self.active_params)


def size_of(name: str) -> tuple[float | None, float | None]:
    """Total and active parameters that a model's name tells: `qwen3-30b-a3b` is 30e9 and 3e9."""
    total = active = None
    for word in _WORDS.split(name):
        found = _SIZE.fullmatch(word)
        if found is None:
            continue
        count = float(found[1]) * (1e9 if found[2].lower() == "b" else 1e6)
        if not 1e5 <= count <= 1e14:
            continue
        if word[0] in "aA":
            active = active or count
        else:
            total = total or count
    return total, active


def depth_and_width(block_params: float, layers: int | None, width: int | None) -> tuple[int, int]:
    """Layers and width of a decoder of 12 x layers x width^2 parameters, at `ASPECT`."""
    if layers is None and width is None:
        width = 64 * max(1, round((block_params * ASPECT / 12) ** (1 / 3) / 64))
    if width is None:
        width = 64 * max(1, round((block_params / (12 * (layers or 1))) ** 0.5 / 64))
    if layers is None:
        layers = max(1, round(block_params / (12 * width * width)))
    return layers, width


def counted(
    layers: int,
    width: int,
    attention_width: int,
    kv_width: int,
    ffn: int,
    gated: bool,
    tables: float,
) -> float:
    """Parameters of a dense decoder; `tables` are those of the vocabulary."""
    attention = 2 * width * (attention_width + kv_width)
    return layers * (attention + (3 if gated else 2) * width * ffn) + tables
