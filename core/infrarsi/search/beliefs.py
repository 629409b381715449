"""The models as they stand after what was told, fitted together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from infrarsi.models.encoding import Encoding, Floats, Rows
from infrarsi.models.memory import MemoryModel, Peak, fit_memory
from infrarsi.models.physics import Physics
from infrarsi.models.step_time import NOISE_SD, StepTimeModel, fit_step_time
from infrarsi.models.validity import ValidityModel, fit_validity
from infrarsi.search.claims import SearchClaim, memory_roles, time_claims
from infrarsi.search.outcomes import Told

FULL = 0.985
"""Share of the capacity a job may fill: the allocator needs the rest."""


_MOST_TIMED = 400


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What does not change from fit to fit."""

    claims: tuple[SearchClaim, ...] = ()
    physics: Physics | None = None
    capacity_gib: float | None = None
    base_gib: float = 0.0
    noise_frac: float = NOISE_SD
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """Models are None where nothing told them anything yet."""

    step_time: StepTimeModel | None
    memory: MemoryModel | None
    validity: ValidityModel
    limit_gib: float | None
    costs: "Costs | None"

    def p_fit(self, rows: Rows) -> Floats:
        """Probability of staying within the capacity; one where no limit is known."""
        if self.memory is None or self.limit_gib is None:
            return np.ones(len(rows))
        return self.memory.p_fit(rows, self.limit_gib)

    def cost(self, log_time: Floats, p_runs: Floats) -> Floats:
        """Expected cost of a trial, s; one everywhere where costs were not told."""
        if self.costs is None:
            return np.ones(len(log_time))
        runs = self.costs.fixed_s + self.costs.n_steps * np.exp(log_time)
        return p_runs * runs + (1 - p_runs) * self.costs.failed_s


@dataclass(frozen=True, kw_only=True)
class Costs:
    """A trial that runs costs fixed_s + n_steps x step time, one that fails failed_s."""

    fixed_s: float
    n_steps: float
    failed_s: float


def fit_beliefs(encoding: Encoding, told: Sequence[Told], facts: Facts) -> Beliefs:
    """Fit all. Without a capacity the lowest bound met by an out-of-memory trial is it."""
    timed = _fitted([t for t in told if t.teaches_speed])
    peaks = _peaks(told, facts.capacity_gib)
    bounds = [p.gib for p in peaks if p.censored]
    limit = facts.capacity_gib * FULL if facts.capacity_gib else min(bounds, default=None)
    if "censoring" in facts.without:
        peaks = [p for p in peaks if not p.censored]
    return Beliefs(
        step_time=_step_time(encoding, timed, told, facts) if timed or facts.physics else None,
        memory=_memory(encoding, peaks, facts) if peaks or facts.physics else None,
        validity=fit_validity(
            encoding,
            [t.setting for t in told if t.status == "ok"],
            [(t.setting, t.status) for t in told if t.is_broken],
        ),
        limit_gib=limit,
        costs=_costs(told),
    )


def _step_time(
    encoding: Encoding, timed: Sequence[Told], told: Sequence[Told], facts: Facts
) -> StepTimeModel:
    return fit_step_time(
        encoding,
        [t.setting for t in timed],
        [t.step_time_s or 0.0 for t in timed],
        time_claims(facts.claims, told),
        physics=facts.physics,
        noise_sd=facts.noise_frac,
        revise="revision" not in facts.without,
    )


def _memory(encoding: Encoding, peaks: Sequence[Peak], facts: Facts) -> MemoryModel:
    roles = memory_roles(facts.claims)
    return fit_memory(encoding, peaks, roles, facts.base_gib, facts.physics)


def _fitted(timed: Sequence[Told]) -> Sequence[Told]:
    """All of them; of very many the fastest and the newest, in their order."""
    if len(timed) <= _MOST_TIMED:
        return timed
    fastest = sorted(range(len(timed)), key=lambda i: timed[i].step_time_s or 0.0)
    kept = {0, *fastest[: _MOST_TIMED // 3], *range(len(timed) - 2 * _MOST_TIMED // 3, len(timed))}
    return [timed[i] for i in sorted(kept)]


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


def _costs(told: Sequence[Told]) -> Costs | None:
    """Least squares of cost on step time, both kept above zero; needs three trials that ran."""
    ran = [(t.cost_s, t.step_time_s) for t in told if t.cost_s and t.teaches_speed]
    if len(ran) < 3:
        return None
    costs, times = (np.asarray(column, dtype=np.float64) for column in zip(*ran, strict=True))
    spread = float(((times - times.mean()) ** 2).sum())
    slope = float(((times - times.mean()) * (costs - costs.mean())).sum()) / spread if spread else 0
    slope = min(max(slope, 0.0), float((costs / times).min()))
    failed = [t.cost_s for t in told if t.cost_s and not t.teaches_speed]
    fixed = max(float(costs.mean()) - slope * float(times.mean()), 1e-3)
    return Costs(fixed_s=fixed, n_steps=slope, failed_s=float(np.mean(failed)) if failed else fixed)
