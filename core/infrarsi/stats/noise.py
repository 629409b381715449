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
    """The A/A control of a machine and a contract: what its units showed, natural logs.

    `slots` say how much slower the job started first was, one a unit or none where not kept.
    """

    log_ratios: tuple[float, ...] = ()
    slots: tuple[float, ...] = ()
    floor_sd: float = FLOOR_SD

    @property
    def n_aa(self) -> int:
        """Units of the control."""
        return len(self.log_ratios)

    @property
    def sd(self) -> float | None:
        """Standard deviation of a unit's log ratio, at least the floor; None where unmeasured.

        Pools the log ratios about zero and the slots about their mean.
        """
        if not self.log_ratios:
            return None
        squares = math.fsum(x * x for x in self.log_ratios)
        freedom = self.n_aa
        if len(self.slots) > 1:
            mean = math.fsum(self.slots) / len(self.slots)
            squares += math.fsum((x - mean) ** 2 for x in self.slots)
            freedom += len(self.slots) - 1
        return math.sqrt(max(squares / freedom, self.floor_sd**2))


def fit_noise(
    aa_log_ratios: Sequence[float], aa_slots: Sequence[float] = (), floor_sd: float = FLOOR_SD
) -> NoiseModel:
    """The noise that A/A units show.

    Args:
        aa_log_ratios: natural logs, one a unit.
        aa_slots: `Unit.slot_log_ratio` of the same units; none where they were not kept.
        floor_sd: lower bound of the standard deviation.
    """
    return NoiseModel(log_ratios=tuple(aa_log_ratios), slots=tuple(aa_slots), floor_sd=floor_sd)
