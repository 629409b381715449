"""Where a campaign's time went."""

from collections.abc import Iterable

from infrarsi.trial import Completed, ShortRun
from infrarsi.wire.results import Cost
from infrarsi_runner.procedures.screening import Screened, n_oom


def add_up(screened: Screened, *, total_s: float, doctor_s: float, confirmation_s: float) -> Cost:
    """The cost of a campaign; the search's parts are taken from its runs, s of wall clock."""
    trials, away = screened.trials, screened.turned_away
    failed = [t for t in trials if not isinstance(t.outcome, Completed)]
    short = [run for entry in (*trials, *away) for run in entry.short_runs]
    return Cost(
        total_s=total_s,
        doctor_s=doctor_s,
        trials_s=sum(t.wall_s for t in trials),
        failed_trials_s=sum(t.wall_s for t in failed),
        confirmation_s=confirmation_s,
        n_trials=len(trials) - 1,
        n_oom=n_oom(trials),
        n_failed=len(failed),
        smoke_s=_took_s(run for run in short if run.kind == "smoke"),
        memory_probe_s=_took_s(run for run in short if run.kind == "memory_probe"),
        anchor_s=sum(anchor.wall_s for anchor in screened.anchors),
        n_turned_away=len(away),
    )


def _took_s(runs: Iterable[ShortRun]) -> float:
    return sum(run.wall_s for run in runs)
