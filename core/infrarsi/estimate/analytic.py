"""Rough step time and memory before any run: one equation each, intervals as wide as they are.

Time: FLOPs over the roof at an efficiency seen in published runs. Memory: 16 bytes a parameter
(fp32 weight, gradient and two Adam moments) and the activations of a decoder block. Leaves out
communication, sharding, recomputation and anything learned from trials.
"""

from infrarsi.frozen import Frozen
from infrarsi.units import GIB

EFFICIENCY = (0.05, 0.25, 0.65)
"""Share of the roof: low, typical, high. Naive scripts to the best published ones."""

_BYTES_PER_PARAMETER = 16
_ACTIVATION_SPREAD = (0.5, 3.0)


class Estimate(Frozen):
    """A guess with the range it may lie in; about nine of ten real jobs do."""

    value: float
    low: float
    high: float


class MemoryEstimate(Frozen):
    """Peak memory of one device, GiB, and what it is made of."""

    peak_gib: Estimate
    terms_gib: dict[str, float]


def estimate_step(
    flops_per_token: float,
    tokens: int,
    roof_flops: float,
    n_devices: int = 1,
    efficiency: tuple[float, float, float] = EFFICIENCY,
) -> Estimate:
    """Step time, s.

    Args:
        flops_per_token: model FLOPs of one token.
        tokens: tokens of a step, all devices together.
        roof_flops: roof of one device, FLOP/s.
        n_devices: devices that share the step.
        efficiency: share of the roof that is reached: low, typical, high; each in (0, 1].
    """
    ideal_s = flops_per_token * tokens / (roof_flops * n_devices)
    low, typical, high = efficiency
    return Estimate(value=ideal_s / typical, low=ideal_s / high, high=ideal_s / low)


def estimate_memory(
    n_parameters: int,
    micro_batch_rows: int,
    seq_len_tokens: int,
    n_layers: int,
    d_model: int,
    n_heads: int,
    vocab: int,
    bytes_per_value: int = 4,
    base_gib: float = 0.0,
    square_attention: bool = True,
) -> MemoryEstimate:
    """Peak memory of one unsharded device.

    Activations follow Korthikanti et al. 2022 (arXiv 2205.05198): 17 values of width `d_model`
    a token and layer, with 2.5 of the sequence length a head where attention keeps its square
    matrix; logits count twice (value and gradient).
    """
    tokens = micro_batch_rows * seq_len_tokens
    terms = {
        "base": base_gib,
        "parameters_and_state": n_parameters * _BYTES_PER_PARAMETER / GIB,
        "activations": 17 * tokens * d_model * n_layers * bytes_per_value / GIB,
        "logits": 2 * tokens * vocab * bytes_per_value / GIB,
    }
    if square_attention:
        square = 2.5 * tokens * seq_len_tokens * n_heads * n_layers
        terms["attention"] = square * bytes_per_value / GIB
    sure = terms["base"] + terms["parameters_and_state"]
    guessed = sum(terms.values()) - sure
    low, high = _ACTIVATION_SPREAD
    peak = Estimate(value=sure + guessed, low=sure + low * guessed, high=sure + high * guessed)
    return MemoryEstimate(peak_gib=peak, terms_gib=terms)


def decoder_flops_per_token(
    n_parameters: int, n_layers: int, d_model: int, seq_len_tokens: int
) -> float:
    """6 FLOPs a parameter and token, and causal attention's 6 x layers x width x length.

    Source: Kaplan et al. 2020 (arXiv 2001.08361), attention halved for the causal mask; the
    parameters are those that multiply (no embedding table unless it is tied to the head).
    """
    return 6.0 * n_parameters + 6.0 * n_layers * d_model * seq_len_tokens
