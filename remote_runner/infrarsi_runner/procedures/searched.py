"""Opening a search on a calibrated job, and telling it trials; the baseline is trial 0."""

from infrarsi.patches import RECIPES
from infrarsi.trial import Completed, Trial
from infrarsi.units import GIB
from infrarsi.wire.results import Calibration
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.job import Job
from infrarsi_runner.searching import SearchChild


def open_search(job: Job, calibration: Calibration, seed: int) -> SearchChild:
    """A searcher over the job's space with the recipes' claims; it has been told nothing yet."""
    return SearchChild(job.space, RECIPES, _job_facts(calibration), seed)


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


def tell(search: SearchChild, trial: Trial) -> None:
    """Tell the search what came of a trial."""
    if trial.outcome is not None:
        search.tell(trial.candidate.setting, trial.outcome)


def _job_facts(calibration: Calibration) -> dict[str, float]:
    base = max(calibration.base_mem_bytes, default=0)
    limit = calibration.mem_limit_bytes
    if limit is None:
        return {"base_mem_gib": base / GIB}
    return {"capacity_gib": (base + limit) / GIB, "base_mem_gib": base / GIB}


def table_version(context: Context) -> int:
    """A number that grows from one table of a contract to the next, over campaigns: tenths of s."""
    return round(10 * context.now_s())
