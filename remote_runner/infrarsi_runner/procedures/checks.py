"""What a candidate must pass before it may cost a trial: a smoke run, and a memory probe.

A smoke run where a patch or a pair of changes never stood in a good trial; a memory probe where
it is uncertain whether the real job fits. A candidate that fails is turned away, and where more
than one of its changes may be to blame, a few suspects are run alone to find out which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from infrarsi.knobs import Candidate, Setting
from infrarsi.trial import Expected, ShortRun, TurnedAway
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.procedures.searched import Search
from infrarsi_runner.procedures.short_runs import ShortRuns

MOST_SUSPECTS = 3
UNCERTAIN = (0.05, 0.95)
"""Chances of fitting between which the memory is looked at first."""


@dataclass(frozen=True)
class Passed:
    """It may cost a trial."""

    short_runs: tuple[ShortRun, ...] = ()


class Checks:
    """The checks of one campaign's candidates; the searcher is told of every short run."""

    def __init__(self, context: Context, job: Job, search: Search, *, knows_limit: bool) -> None:
        """`knows_limit` is whether a memory limit is known for the job."""
        self._context = context
        self._job = job
        self._search = search
        self._knows_limit = knows_limit
        self._runs = ShortRuns(context, job)

    def check(
        self, key: str, number: int, candidate: Candidate, expected: Expected
    ) -> Passed | TurnedAway:
        """Run what has to be run before trial `number`; `key` names the attempt in the journal."""
        done: list[ShortRun] = []
        suspects = self._suspects(key, candidate.setting)
        if needs_smoke(suspects, self._job.patch_names):
            smoked = self._runs.smoke(f"{key}/smoke", candidate)
            if smoked is None:
                return Passed()
            self._keep(smoked, done)
            if smoked.failed:
                return self._turn_away(key, number, smoked, suspects, done, expected)
        if self._is_uncertain(expected) and not any(run.tells_memory for run in done):
            probed = self._runs.memory_probe(f"{key}/probe", candidate)
            if probed is not None:
                self._keep(probed, done)
                if probed.failed:
                    return _turned_away(number, probed, done, expected, {})
        return Passed(tuple(done))

    def _keep(self, run: ShortRun, done: list[ShortRun]) -> None:
        done.append(run)
        self._search.add(run)

    def _suspects(self, key: str, setting: Setting) -> list[Setting]:
        return self._context.once(
            f"{key}/suspects", list[Setting], lambda: self._search.child.suspects(setting)
        )

    def _is_uncertain(self, expected: Expected) -> bool:
        low, high = UNCERTAIN
        p_fit = expected.predicted_p_fit
        return self._knows_limit and p_fit is not None and low < p_fit < high

    def _turn_away(
        self,
        key: str,
        number: int,
        whole: ShortRun,
        suspects: Sequence[Setting],
        done: list[ShortRun],
        expected: Expected,
    ) -> TurnedAway:
        """Run the suspects alone until one fails: that one is to blame."""
        blamed: Setting = whole.candidate.changed(self._job.space)
        alone = [changes for changes in suspects if changes != blamed]
        for position, changes in enumerate(alone[:MOST_SUSPECTS]):
            setting = self._job.space.complete(changes)
            run = self._runs.smoke(f"{key}/suspect/{position}", Candidate(setting=setting))
            if run is None:
                continue
            self._keep(run, done)
            if run.failed:
                blamed = changes
                break
        return _turned_away(number, whole, done, expected, blamed)


def needs_smoke(suspects: Sequence[Setting], patches: Sequence[str]) -> bool:
    """Whether a patch, or a pair of changes, never stood in a good trial.

    Args:
        suspects: changes and pairs of changes that never did.
        patches: names of the patches among the knobs.
    """
    return any(len(changes) > 1 or any(name in patches for name in changes) for changes in suspects)


def _turned_away(
    number: int, failed: ShortRun, done: Sequence[ShortRun], expected: Expected, blamed: Setting
) -> TurnedAway:
    return TurnedAway(
        before_trial=number,
        candidate=failed.candidate,
        outcome=failed.outcome,
        short_runs=tuple(done),
        blamed=blamed,
        **expected.model_dump(),
    )
