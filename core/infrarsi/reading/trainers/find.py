"""Which library drives or configures the training loop of a job."""

import ast
from collections.abc import Callable

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.syntax import unparse
from infrarsi.reading.trainers.accelerate import read_accelerate
from infrarsi.reading.trainers.deepspeed import read_deepspeed
from infrarsi.reading.trainers.fabric import read_fabric
from infrarsi.reading.trainers.huggingface import read_trainer
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.lightning import read_lightning
from infrarsi.reading.trainers.megatron import read_megatron
from infrarsi.reading.training import Training
from infrarsi.reading.values import Instance, Symbol, Unknown, Value

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


def find_library(evaluator: Evaluator, training: Training | None) -> LibraryJob | None:
    """The library's part in the job; one that owns the loop only where the job has none."""
    has_loop = training is not None and training.update is not None
    for name, reader in _HELPERS if has_loop else (*_OWNERS, *_HELPERS):
        found = reader(evaluator) if evaluator.project.mentions(name) else None
        if found is not None:
            return found
    return _unseen(evaluator, training) if training is not None else None


def _unseen(evaluator: Evaluator, training: Training) -> LibraryJob | None:
    """Something that is not followed but calls backward itself: `engine.backward(loss)`."""
    site = training.backward
    func = site.call.func
    if not site.call.args or not isinstance(func, ast.Attribute):
        return None
    held = evaluator.value(func.value, evaluator.frame(site.scope))
    if isinstance(held, Instance) or (isinstance(held, Symbol) and held.name.startswith("torch.")):
        return None
    name = unparse(func.value)
    unseen = Unknown(f"`{name}` calls backward, and what it is is not followed")
    stepping = [step.call.func for step in training.steps]
    stepped = any(isinstance(f, ast.Attribute) and unparse(f.value) == name for f in stepping)
    inside = stepped or "accumulate" in evaluator.project.calls_by_name
    values: dict[str, Value] = {"accumulation": unseen} if inside else {}
    if evaluator.launch.launcher == "python":
        values["world_size"] = unseen
    return LibraryJob(site=site, steps_inside=inside, values=values, unseen=unseen)
