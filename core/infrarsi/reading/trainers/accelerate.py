"""Accelerate around a loop of the job's own: accumulation inside the library, number formats."""

from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.externals import environment
from infrarsi.reading.trainers.callees import calls_of
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.settings import Settings, settings_of, whole
from infrarsi.reading.values import Known, Made, Unknown, Value

ROOTS = {"accelerate"}
ACCELERATOR = {"Accelerator"}
_FORMATS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8"}
_STEPS = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"
_PRECISION = "ACCELERATE_MIXED_PRECISION"


def read_accelerate(evaluator: Evaluator) -> LibraryJob | None:
    """What the first Accelerator says."""
    for site, _ in calls_of(evaluator, ROOTS, ACCELERATOR):
        made = Made("accelerate.Accelerator", site.call, evaluator.frame(site.scope))
        settings = settings_of(evaluator, made, {})
        inside = "accumulate" in evaluator.project.calls_by_name
        values = dict(_values(evaluator, settings))
        if inside:
            values["accumulation"] = accumulation(evaluator, settings)
        replicas = None
        if "ParallelismConfig" in evaluator.project.calls_by_name:
            replicas = Unknown("how many processes share one batch is set by ParallelismConfig")
        return LibraryJob(
            site=site,
            steps_inside=inside,
            values=values,
            replicas=replicas,
            splits_rows=_splits_rows(evaluator, settings),
        )
    return None


def accumulation(evaluator: Evaluator, settings: Settings) -> Value:
    """Micro-batches of one step; the launcher's variable goes before the argument."""
    plugin = settings.get("gradient_accumulation_plugin")
    if isinstance(plugin, Made):
        value = settings_of(evaluator, plugin, {"num_steps": None}).number("num_steps")
        return value
    if plugin is not None and not (isinstance(plugin, Known) and plugin.value is None):
        return Unknown("the accumulation plugin is not made in plain sight")
    launched = environment(evaluator.launch, Known(_STEPS))
    if launched is not None:
        return _as_number(launched)
    return settings.get("gradient_accumulation_steps") or Known(1)


def _splits_rows(evaluator: Evaluator, settings: Settings) -> bool | None:
    """Whether a loader's batch is cut among the processes (`split_batches`)."""
    held = settings.get("dataloader_config")
    if isinstance(held, Made):
        return settings_of(evaluator, held, {"split_batches": False}).is_on("split_batches")
    return settings.is_on("split_batches")


def _values(evaluator: Evaluator, settings: Settings) -> Iterator[tuple[str, Value]]:
    given = settings.get("mixed_precision")
    if given is None or (isinstance(given, Known) and given.value is None):
        given = environment(evaluator.launch, Known(_PRECISION))
    if given is None:
        return
    if not isinstance(given, Known):
        yield "precision", Unknown("the precision given to Accelerator is not known")
    elif str(given.value) in _FORMATS:
        yield "precision", Known(_FORMATS[str(given.value)], given.origins, given.place)


def _as_number(text: Known) -> Value:
    try:
        value = Known(int(str(text.value)), text.origins, text.place)
    except ValueError:
        return Unknown(f"{_STEPS} is no number")
    return value if whole(value) is not None else Unknown(f"{_STEPS} is no number of steps")
