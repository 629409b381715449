"""Lightning Fabric around a loop of the job's own: processes and number formats."""

from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.trainers.callees import calls_of
from infrarsi.reading.trainers.devices import lightning_world
from infrarsi.reading.trainers.dialects import lightning_formats
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.settings import Settings, settings_of
from infrarsi.reading.values import Made, Value

FABRIC = {"Fabric"}
ROOTS = {"lightning", "lightning_fabric"}


def read_fabric(evaluator: Evaluator) -> LibraryJob | None:
    """What the first Fabric says."""
    for site, _ in calls_of(evaluator, ROOTS, FABRIC):
        made = Made("lightning.Fabric", site.call, evaluator.frame(site.scope))
        settings = settings_of(evaluator, made, {"num_nodes": 1})
        return LibraryJob(site=site, values=dict(_values(evaluator, settings)))
    return None


def _values(evaluator: Evaluator, settings: Settings) -> Iterator[tuple[str, Value]]:
    yield "world_size", lightning_world(evaluator, settings)
    given = settings.get("precision")
    formats = lightning_formats(given)
    if given is not None and formats.precision is not None:
        yield "precision", formats.precision
    if formats.parameters is not None:
        yield "parameters", formats.parameters
