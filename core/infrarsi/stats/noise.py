"""NoiseModel: how much units of the same program against itself differ.

A unit's log ratio in an A/A control is zero by symmetry (the job started first changes sides
within the unit), so that whatever is seen is noise, a remaining bias included.
"""

import math
from collections.abc import Sequence

from infrarsi.frozen import Frozen

FLOOR_SD = 0.003
"""No machine is believed to be quieter than this (natural log of a unit's ratio)."""


class NoiseModel(Frozen):
    """The A/A control of a machine and a contract: sum of squared log ratios of `n_aa` units."""

    sum_squares: float = 0.0
    n_aa: int = 0
    floor_sd: float = FLOOR_SD

    @property
    def sd(self) -> float | None:
        """Standard deviation of a unit's log ratio, at least the floor; None where unmeasured."""
        if self.n_aa == 0:
            return None
        return math.sqrt(max(self.sum_squares / self.n_aa, self.floor_sd**2))


def fit_noise(aa_log_ratios: Sequence[float], floor_sd: float = FLOOR_SD) -> NoiseModel:
    """Pool the log ratios of A/A units (natural logs, one a unit) about zero."""
    return NoiseModel(
        sum_squares=math.fsum(x * x for x in aa_log_ratios),
        n_aa=len(aa_log_ratios),
        floor_sd=floor_sd,
    )
