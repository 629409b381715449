"""Short runs of the baseline between the trials, and the drift of the machine they show.

How often one is made follows from how fast the machine drifts, how noisy a reading is, and what
an anchor costs beside a trial (`stats.drift`); never more than `MOST_TRIALS` trials apart.
"""

import math
from dataclasses import replace

from infrarsi.stats.drift import Anchor, Drift, fit_drift
from infrarsi.stats.noise import FLOOR_SD
from infrarsi.trial import Completed, Trial
from infrarsi.wire.results import AnchorRun, Calibration
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.procedures.trials import WARMUP_STEPS
from infrarsi_runner.running import outcome_of

ANCHOR_STEPS = 4
MOST_TRIALS = 6


class Anchoring:
    """The anchors of one campaign. `runs` are all of them, in order."""

    def __init__(
        self,
        context: Context,
        job: Job,
        calibration: Calibration,
        started_s: float,
        calibrated_at_s: float | None,
    ) -> None:
        """Nothing runs yet.

        Args:
            context: the campaign's.
            job: its baseline is what is run.
            calibration: what drift is measured against.
            started_s: when the campaign began, time of day in s.
            calibrated_at_s: when the calibration was finished, s after the campaign began; None
                where an earlier campaign made it, so that nothing says how the machine is now.
        """
        self._context = context
        self._job = job
        self._calibration = calibration
        self._started_s = started_s
        self._first = (
            () if calibrated_at_s is None else (Anchor(at_s=calibrated_at_s, log_ratio=0),)
        )
        self.runs: list[AnchorRun] = []

    def before(self, number: int, trials: list[Trial]) -> bool:
        """Make an anchor before trial `number` where one is due; whether one was made."""
        at_s = self._context.once(f"anchor/{number}/at", float, self.now_s)
        if not self._is_due(number, at_s, trials):
            return False
        run = self._context.once(f"anchor/{number}", AnchorRun, lambda: self._run(number, at_s))
        self.runs.append(run)
        return True

    def drift(self) -> Drift:
        """The drift through all anchors so far."""
        calibrated_s = self._calibration.step_time_s.value
        read = [
            Anchor(at_s=run.at_s, log_ratio=math.log(run.step_time_s / calibrated_s))
            for run in self.runs
            if run.step_time_s is not None
        ]
        return fit_drift([*self._first, *read], expected_noise_sd(self._calibration))

    def now_s(self) -> float:
        """S since the campaign began."""
        return self._context.now_s() - self._started_s

    def _is_due(self, number: int, at_s: float, trials: list[Trial]) -> bool:
        run = [trial.wall_s for trial in trials if trial.wall_s > 0]
        last = self.runs[-1].before_trial if self.runs else 1 if self._first else None
        if last is None or number - last >= MOST_TRIALS:
            return True
        step_s = self._calibration.step_time_s.value
        anchor_s = self.runs[-1].wall_s if self.runs else (WARMUP_STEPS + ANCHOR_STEPS) * step_s
        trial_s = sum(run) / len(run) if run else anchor_s
        drift = self.drift()
        return bool(drift.anchors) and drift.is_due(at_s, trial_s=trial_s, anchor_s=anchor_s)

    def _run(self, number: int, at_s: float) -> AnchorRun:
        spec = replace(
            self._job.spec("timed", f"anchor-{number}"),
            warmup_steps=WARMUP_STEPS,
            window_steps=ANCHOR_STEPS,
        )
        result = self._context.runs.execute(spec)
        self._context.runs.discard(result)
        outcome = outcome_of(result, spec)
        return AnchorRun(
            before_trial=number,
            at_s=at_s,
            wall_s=self.now_s() - at_s,
            step_time_s=outcome.step_time_s if isinstance(outcome, Completed) else None,
        )


def expected_noise_sd(calibration: Calibration) -> float:
    """A single reading's noise as the calibration knows it, natural log.

    A unit's log ratio is the mean of two pairs, so that its spread is about a single run's.
    """
    return max(calibration.pair_log_sd, FLOOR_SD)


def anchored(trial: Trial, drift: Drift) -> Trial:
    """The trial with its reading set against the baseline's at the same time."""
    if not isinstance(trial.outcome, Completed) or trial.at_s is None:
        return trial
    slower, sd = drift.at(trial.at_s + trial.wall_s / 2)
    return trial.model_copy(
        update={
            "anchored_step_time_s": trial.outcome.step_time_s * math.exp(-slower),
            "reading_log_sd": math.hypot(drift.noise_sd, sd),
        }
    )
