"""A search on a calibrated job and what it was told, so that it can be told again.

The baseline is trial 0. A later anchor can change what a reading of an earlier trial is worth;
then the searcher starts anew and is told everything in the same order.
"""

import math
from types import TracebackType
from typing import Self

from infrarsi.patches import RECIPES
from infrarsi.stats.drift import Drift
from infrarsi.trial import Completed, ShortRun, Trial
from infrarsi.units import GIB
from infrarsi.wire.results import Calibration
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.anchoring import anchored, expected_noise_sd
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.searching import SearchChild, told_of_short_run, told_of_trial

_WORTH_TELLING = 0.5
"""A reading that moves by less of its noise is not told again, nor such a change of the noise."""


class Search:
    """A searcher and its trials. Use as a context manager."""

    def __init__(self, job: Job, calibration: Calibration, seed: int) -> None:
        """A searcher over the job's space with the recipes' claims, told of the baseline."""
        self.child = SearchChild(job.space, RECIPES, _job_facts(calibration), seed)
        self._told: list[Trial | ShortRun] = []
        self._said_s: dict[int, float | None] = {}
        self._said_noise = expected_noise_sd(calibration)
        self.add(baseline_trial(job, calibration))

    @property
    def trials(self) -> list[Trial]:
        """All trials as they are known now, the baseline first."""
        return [entry for entry in self._told if isinstance(entry, Trial)]

    def add(self, entry: Trial | ShortRun) -> None:
        """Tell the searcher what came of a trial or of a short run."""
        self._told.append(entry)
        self._tell(entry)

    def set_against(self, drift: Drift) -> None:
        """Take the trials' readings against a drift that is known better now."""
        self._told = [anchored(e, drift) if isinstance(e, Trial) else e for e in self._told]
        noise_moved = abs(math.log(drift.noise_sd / self._said_noise)) > _WORTH_TELLING
        if noise_moved or any(
            self._moved(trial) > _WORTH_TELLING * drift.noise_sd for trial in self.trials
        ):
            self._said_noise = drift.noise_sd
            self.child.start_again(noise_frac=drift.noise_sd)
            for entry in self._told:
                self._tell(entry)

    def __enter__(self) -> Self:
        """The search itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """End the searcher's process."""
        self.child.close()

    def _tell(self, entry: Trial | ShortRun) -> None:
        if isinstance(entry, Trial):
            self._said_s[entry.number] = entry.step_time_s
        told = told_of_trial(entry) if isinstance(entry, Trial) else told_of_short_run(entry)
        if told is not None:
            self.child.tell(entry.candidate.setting, told)

    def _moved(self, trial: Trial) -> float:
        """By how much its step time differs from what was told, natural log."""
        said_s = self._said_s.get(trial.number)
        if said_s is None or trial.step_time_s is None:
            return 0.0
        return abs(math.log(trial.step_time_s / said_s))


def baseline_trial(job: Job, calibration: Calibration) -> Trial:
    """The user's own start, as doctor measured it."""
    return Trial(
        number=0,
        candidate=job.baseline_candidate(),
        origin="baseline",
        outcome=Completed(
            step_time_s=calibration.step_time_s.value,
            peak_mem_bytes=max(calibration.peak_mem_bytes),
        ),
    )


def table_version(context: Context) -> int:
    """A number that grows from one table of a contract to the next, over campaigns: tenths of s."""
    return round(10 * context.now_s())


def _job_facts(calibration: Calibration) -> dict[str, float]:
    base = max(calibration.base_mem_bytes, default=0)
    limit = calibration.mem_limit_bytes
    facts = {"base_mem_gib": base / GIB, "noise_frac": expected_noise_sd(calibration)}
    return facts if limit is None else {**facts, "capacity_gib": (base + limit) / GIB}
