"""Model FLOPs and their utilisation, by one versioned convention.

`counted-causal-1`: the FLOPs the baseline's preflight counted over one step (forward and
backward, two per multiply-add), attention's square products halved because the model is causal,
divided by the tokens of the step. Frozen in the calibration: a candidate is never recounted.
"""

from infrarsi.errors import ImpossibleMfu

CONVENTION = "counted-causal-1"
"""Name of the convention; another way of counting gets another name."""


def flops_per_token(total_flops: int, attention_flops: int, tokens: int) -> float:
    """Model FLOPs of one token.

    Args:
        total_flops: counted over one step, summed over ranks.
        attention_flops: the part of it in products with a square matrix of the sequence length.
        tokens: tokens of that step, summed over ranks; positive.
    """
    return (total_flops - attention_flops / 2) / tokens


def mfu(tokens_per_s: float, flops_per_token: float, roof_flops: float, n_devices: int) -> float:
    """Model FLOPs utilisation, a fraction in [0, 1].

    Args:
        tokens_per_s: of the whole job.
        flops_per_token: by `flops_per_token`.
        roof_flops: fixed roof of one device, FLOP/s.
        n_devices: devices of the job.

    Raises:
        ImpossibleMfu: above 100 %.
    """
    frac = tokens_per_s * flops_per_token / (roof_flops * n_devices)
    if frac > 1:
        raise ImpossibleMfu(
            f"An MFU of {100 * frac:.0f} % is impossible.",
            "Measure the roof again, with nothing else running.",
        )
    return frac
