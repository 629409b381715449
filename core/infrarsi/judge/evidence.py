"""JudgedEvidence: everything the clauses may look at, and nothing else.

What the runner saw from outside (turns, observations, hashes of files) and the audit decide;
what the processes recorded about themselves are hints. Leaves out how it was gathered.
"""

from typing import Literal

from infrarsi.contract.contract import Lock
from infrarsi.frozen import Frozen
from infrarsi.judge.audit_comparison import AuditComparison
from infrarsi.pair import Turn
from infrarsi.run import RunObservation
from infrarsi.wire.probe import RankEvidence, StepRecord
from infrarsi.wire.results import Calibration

PrecisionClass = Literal["fp32", "16bit"]
Need = Literal["audit", "turns", "endurance", "locked_files", "calibration"]


class EnduranceRun(Frozen):
    """One ungated run of `n_steps`, drawn at launch, spawn to exit.

    `claimed_step_time_s` is wall time and `claimed_cpu_s_per_step` CPU time of the whole tree;
    the start-up figures are the allowance, measured on runs of the same job. The drifts say how
    many times as long, and as much CPU time, the baseline's steps took beside it as in the turns;
    `unevenness_frac` is by how much the baseline's slowest turn exceeded its fastest.
    """

    n_steps: int
    observation: RunObservation
    claimed_step_time_s: float
    claimed_cpu_s_per_step: float | None = None
    startup_wall_s: float
    startup_cpu_s: float
    wall_drift: float = 1.0
    cpu_drift: float = 1.0
    unevenness_frac: float = 0.0


class JudgedEvidence(Frozen):
    """The evidence on one candidate against its locked baseline.

    `candidate` and `baseline` are timed runs with the same seed and hash key, one file a rank.
    `turns` are all turns of the pairs. `n_dropouts` counts the baseline's dropout calls in a step
    that was redone. `needs` names what a verdict cannot do without: a trial
    within the search needs none of them, a pair its turns, a promotion all.
    """

    lock: Lock
    candidate: tuple[RankEvidence, ...]
    baseline: tuple[RankEvidence, ...]
    candidate_run: RunObservation | None = None
    candidate_step_time_s: float | None = None
    audits: tuple[AuditComparison, ...] = ()
    turns: tuple[Turn, ...] = ()
    locked_before: dict[str, str] | None = None
    locked_after: dict[str, str] | None = None
    endurance: EnduranceRun | None = None
    calibration: Calibration | None = None
    n_dropouts: int = 0
    needs: tuple[Need, ...] = ("audit", "turns", "endurance", "locked_files", "calibration")

    @property
    def world_size(self) -> int:
        """Ranks the contract declares."""
        return self.lock.contract.workload.world_size

    def precision_class(self) -> PrecisionClass:
        """Which tolerances hold: those of 16 bit only where declared or where autocast may be."""
        if self.lock.contract.precision != "fp32":
            return "16bit"
        allowed = self.lock.contract.policy.allow_bf16_autocast
        return "16bit" if allowed and "bfloat16" in self.autocasts() else "fp32"

    def computes_on_cpus(self) -> bool:
        """Whether every rank of the baseline says that its model lies on the CPU.

        What the candidate says does not count here; the clause `devices` compares the two.
        """
        return bool(self.baseline) and all(
            rank.root_module is not None and rank.device.partition(":")[0] == "cpu"
            for rank in self.baseline
        )

    def is_laid_out_otherwise(self) -> bool:
        """Whether the candidate says that its parameters have other names or shapes."""
        sides = (
            {shape for rank in side for shape in rank.parameter_shapes}
            for side in (self.candidate, self.baseline)
        )
        ours, theirs = sides
        return ours != theirs

    def autocasts(self) -> frozenset[str]:
        """The candidate's autocast types as its processes saw them."""
        seen = (step.autocast for rank in self.candidate for step in rank.steps)
        return frozenset(a.removeprefix("torch.") for a in seen if a)

    def common_steps(self) -> tuple[tuple[tuple[StepRecord, ...], tuple[StepRecord, ...]], ...]:
        """(candidate, baseline) records of every step all ranks of both sides recorded."""
        ours, theirs = steps_by_index(self.candidate), steps_by_index(self.baseline)
        return tuple((ours[i], theirs[i]) for i in sorted(ours.keys() & theirs.keys()))


def steps_by_index(side: tuple[RankEvidence, ...]) -> dict[int, tuple[StepRecord, ...]]:
    """The records of every step that all ranks of a side recorded, by its index."""
    records: dict[int, list[StepRecord]] = {}
    for rank in sorted(side, key=lambda r: r.rank):
        for step in rank.steps:
            records.setdefault(step.index, []).append(step)
    return {i: tuple(steps) for i, steps in records.items() if len(steps) == len(side)}
