"""Which library drives or configures the training loop of a job."""

from collections.abc import Callable

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.trainers.accelerate import read_accelerate
from infrarsi.reading.trainers.deepspeed import read_deepspeed
from infrarsi.reading.trainers.fabric import read_fabric
from infrarsi.reading.trainers.huggingface import read_trainer
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.lightning import read_lightning
from infrarsi.reading.trainers.megatron import read_megatron

_Reader = Callable[[Evaluator], LibraryJob | None]
_OWNERS: tuple[tuple[str, _Reader], ...] = (
    ("transformers", read_trainer),
    ("trl", read_trainer),
    ("lightning", read_lightning),
    ("megatron", read_megatron),
)
_HELPERS: tuple[tuple[str, _Reader], ...] = (
    ("deepspeed", read_deepspeed),
    ("accelerate", read_accelerate),
    ("lightning", read_fabric),
)


def find_library(evaluator: Evaluator, *, has_loop: bool) -> LibraryJob | None:
    """The library's part in the job; one that owns the loop only where the job has none."""
    texts = [source.text for source in evaluator.project.files.values()]
    for name, reader in _HELPERS if has_loop else (*_OWNERS, *_HELPERS):
        found = reader(evaluator) if any(name in text for text in texts) else None
        if found is not None:
            return found
    return None
