"""Model FLOPs and their utilisation, by one versioned convention.

`counted-causal-1`: the FLOPs the baseline's preflight counted over one step (forward and
backward, two per multiply-add), attention's square products halved because the model is causal,
divided by the tokens of the step. Frozen in the calibration: a candidate is never recounted.
"""

from collections.abc import Sequence
from typing import Protocol

from infrarsi.errors import ImpossibleMfu

CONVENTION = "counted-causal-1"
"""Name of the convention; another way of counting gets another name."""


class Counted(Protocol):
    """One rank's count of one step, as the preflight leaves it (`wire.probe.FlopCount`)."""

    @property
    def total(self) -> int:
        """All FLOPs, forward and backward."""
        ...

    @property
    def attention(self) -> int:
        """The part in products with a square matrix of the sequence length."""
        ...


def flops_per_token(counts: Sequence[Counted], tokens: int) -> float:
    """Model FLOPs of one token.

    Args:
        counts: one of each rank, of the same step.
        tokens: tokens of that step, summed over ranks; positive.
    """
    return sum(count.total - count.attention / 2 for count in counts) / tokens


def mfu(
    tokens_per_s: float, flops_per_token: float, roof_flops: float, n_devices: int = 1
) -> float:
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
