"""The three models as they stand after what was told, fitted together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from infrarsi.knobs import Setting
from infrarsi.models.encoding import Floats
from infrarsi.models.memory import MemoryModel, Peak, fit_memory
from infrarsi.models.step_time import StepTimeModel, fit_step_time
from infrarsi.models.validity import ValidityModel, fit_validity
from infrarsi.search.claims import SearchClaim, memory_roles, time_claims
from infrarsi.search.outcomes import Told
from infrarsi.search.space import SearchSpace

FULL = 0.985
"""Share of the capacity a job may fill: the allocator needs the rest."""


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """Models are None where nothing told them anything yet."""

    step_time: StepTimeModel | None
    memory: MemoryModel | None
    validity: ValidityModel
    limit_gib: float | None

    def p_fit(self, settings: Sequence[Setting]) -> Floats:
        """Probability of staying within the capacity; one where no limit is known."""
        if self.memory is None or self.limit_gib is None:
            return np.ones(len(settings))
        return self.memory.p_fit(settings, self.limit_gib)


def fit_beliefs(
    space: SearchSpace,
    told: Sequence[Told],
    claims: Sequence[SearchClaim],
    capacity_gib: float | None,
    base_gib: float,
) -> Beliefs:
    """Fit all three. Without a capacity the lowest bound met by an out-of-memory trial is it."""
    timed = [t for t in told if t.teaches_speed]
    peaks = _peaks(told, capacity_gib)
    step_time = (
        fit_step_time(
            space.encoding,
            [t.setting for t in timed],
            [t.step_time_s or 0.0 for t in timed],
            time_claims(claims, told),
        )
        if timed
        else None
    )
    memory = fit_memory(space.encoding, peaks, memory_roles(claims), base_gib) if peaks else None
    validity = fit_validity(
        space.encoding,
        [t.setting for t in told if t.status == "ok"],
        [t.setting for t in told if t.is_broken],
    )
    bounds = [p.gib for p in peaks if p.censored]
    limit = capacity_gib * FULL if capacity_gib else min(bounds, default=None)
    return Beliefs(step_time=step_time, memory=memory, validity=validity, limit_gib=limit)


def _peaks(told: Sequence[Told], capacity_gib: float | None) -> list[Peak]:
    """Measured peaks, and bounds: the value told, else the capacity, else the highest peak."""
    measured = [
        Peak(setting=t.setting, gib=t.peak_mem_gib)
        for t in told
        if t.status in ("ok", "nan") and t.peak_mem_gib
    ]
    highest = max((p.gib for p in measured), default=None)
    bounds: list[Peak] = []
    for t in told:
        bound = t.mem_at_least_gib or capacity_gib or highest
        if t.status == "oom" and bound:
            bounds.append(Peak(setting=t.setting, gib=bound, censored=True))
    return measured + bounds
