"""The search of a campaign: ask, check, anchor, run, tell; a plain loop over journalled steps.

Only what is run at full size is a trial and counts against the budget's trials; all time counts
against its minutes. Leaves out confirmation, which alone may claim a gain.
"""

from dataclasses import dataclass, field
from typing import Any

from infrarsi.frozen import Scalar
from infrarsi.knobs import Candidate, Setting
from infrarsi.trial import Completed, Expected, OutOfMemory, Trial, TurnedAway
from infrarsi.wire.messages import Progressed, TrialEnded
from infrarsi.wire.results import AnchorRun, Calibration, PredictionTable
from infrarsi_runner.context import Context
from infrarsi_runner.predictions import expected, prediction_table
from infrarsi_runner.procedures.anchoring import Anchoring, anchored
from infrarsi_runner.procedures.checks import Checks, Passed
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.procedures.searched import Search, table_version
from infrarsi_runner.procedures.trials import run_trial

CONFIRM_RESERVE_FRAC = 0.5
MOST_TURNED_AWAY = 3
"""Times the trials of the budget: then the space is not worth more short runs."""

_OptionalSetting: Any = dict[str, Scalar] | None


@dataclass
class Screened:
    """What the search of a campaign has done so far; the baseline is trial 0."""

    trials: list[Trial] = field(default_factory=list[Trial])
    turned_away: list[TurnedAway] = field(default_factory=list[TurnedAway])
    anchors: list[AnchorRun] = field(default_factory=list[AnchorRun])

    @property
    def spent_s(self) -> float:
        """All its runs together, s of wall clock."""
        short = [run for entry in (*self.trials, *self.turned_away) for run in entry.short_runs]
        return sum(run.wall_s for run in (*self.trials, *short, *self.anchors))


class Screening:
    """The search of one campaign."""

    def __init__(
        self,
        context: Context,
        job: Job,
        calibration: Calibration,
        search: Search,
        anchoring: Anchoring,
    ) -> None:
        """Bind what every trial needs; nothing runs yet."""
        self._context = context
        self._job = job
        self._calibration = calibration
        self._search = search
        self._anchoring = anchoring
        knows_limit = calibration.mem_limit_bytes is not None
        self._checks = Checks(context, job, search, knows_limit=knows_limit)
        self._turned_away: list[TurnedAway] = []

    def run(self) -> Screened:
        """All trials the budget allows, or as many as there are settings."""
        budget = self._context.request.budget
        budget_s = 60 * budget.minutes * CONFIRM_RESERVE_FRAC
        number = 1
        while number <= budget.n_trials:
            so_far = self._so_far()
            most = MOST_TURNED_AWAY * budget.n_trials
            if so_far.spent_s > budget_s or len(so_far.turned_away) > most:
                break
            self._context.check()
            asked = self._ask(number)
            if asked is None:
                break
            candidate, prediction, key = asked
            self._progress(number, candidate, budget_s - so_far.spent_s)
            checked = self._checks.check(key, number, candidate, prediction)
            if isinstance(checked, TurnedAway):
                self._turn_away(key, checked)
                continue
            self._trial(number, candidate, prediction, checked)
            number += 1
        if number > 1 and self._so_far().spent_s <= budget_s:
            self._anchor(number)
        return self._so_far()

    def _so_far(self) -> Screened:
        return Screened(
            trials=self._search.trials,
            turned_away=list(self._turned_away),
            anchors=list(self._anchoring.runs),
        )

    def _ask(self, number: int) -> tuple[Candidate, Expected, str] | None:
        """The next candidate, what is expected of it, and its key in the journal."""
        attempt = sum(away.before_trial == number for away in self._turned_away)
        key = f"trial/{number}" if attempt == 0 else f"trial/{number}/again/{attempt}"
        child = self._search.child
        setting = self._context.once(f"{key}/ask", _OptionalSetting, child.ask)
        if setting is None:
            return None
        prediction = self._context.once(
            f"{key}/prediction", Expected, lambda: expected(setting, child)
        )
        return Candidate(setting=setting), prediction, key

    def _turn_away(self, key: str, away: TurnedAway) -> None:
        self._turned_away.append(away)
        changed = _sentence(away.candidate.changed(self._job.space))
        blamed = f" with {_sentence(away.blamed)}" if away.blamed else ""
        self._context.emit_once(
            f"{key}/turned-away",
            Progressed(
                stage="search",
                message=f"{changed}: turned away, {away.outcome.kind} within a few steps{blamed}",
                done=away.before_trial - 1,
                total=self._context.request.budget.n_trials,
            ),
        )

    def _trial(
        self, number: int, candidate: Candidate, prediction: Expected, passed: Passed
    ) -> None:
        self._anchor(number)
        key = f"trial/{number}"
        at_s = self._context.once(f"{key}/at", float, self._anchoring.now_s)
        ran = self._context.once(
            key, Trial, lambda: run_trial(self._context, self._job, number, candidate)
        )
        more = {**prediction.model_dump(), "at_s": at_s, "short_runs": passed.short_runs}
        self._search.add(anchored(ran.model_copy(update=more), self._anchoring.drift()))
        self._publish(number)

    def _anchor(self, number: int) -> None:
        if self._anchoring.before(number, self._search.trials):
            self._search.set_against(self._anchoring.drift())

    def _publish(self, number: int) -> None:
        context, trials = self._context, self._search.trials
        context.emit_once(
            f"trial/{number}/ended",
            TrialEnded(
                trial=trials[-1],
                changed=trials[-1].candidate.changed(self._job.space),
                best_ratio=_best_ratio(trials),
                n_oom=n_oom(trials),
            ),
        )
        table = context.once(
            f"trial/{number}/table",
            PredictionTable,
            lambda: prediction_table(
                self._job.space,
                self._calibration,
                trials,
                self._search.child,
                version=table_version(context),
            ),
        )
        context.publish(table)

    def _progress(self, number: int, candidate: Candidate, left_s: float) -> None:
        context = self._context
        attempt = len(self._turned_away)
        context.emit_once(
            f"trial/{number}/progress/{attempt}",
            Progressed(
                stage="search",
                message=_sentence(candidate.changed(self._job.space)),
                done=number - 1,
                total=context.request.budget.n_trials,
                left_s=self._left_s(number, left_s),
            ),
        )

    def _left_s(self, number: int, budget_left_s: float) -> float:
        spent_s = self._so_far().spent_s
        if number == 1 or spent_s == 0:
            return budget_left_s
        left = self._context.request.budget.n_trials - number + 1
        return min(left * spent_s / (number - 1), budget_left_s)


def n_oom(trials: list[Trial]) -> int:
    """Trials that ran out of memory."""
    return sum(isinstance(t.outcome, OutOfMemory) for t in trials)


def _sentence(changed: Setting) -> str:
    if not changed:
        return "the baseline again"
    return ", ".join(k if v is True else f"{k}={v}" for k, v in changed.items())


def _best_ratio(trials: list[Trial]) -> float:
    times = [t.step_time_s for t in trials if isinstance(t.outcome, Completed)]
    measured = [time for time in times if time is not None]
    return measured[0] / min(measured)
