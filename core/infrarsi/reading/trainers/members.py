"""What objects of training libraries hold and hand back, as rank 0 sees it.

`accelerator.num_processes`, `training_args.seed`, `engine.train_batch_size()`; and calls that give
back what they are given: `accelerator.prepare(model, loader)`, `fabric.setup(model)`.
"""

import ast

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.frames import Frame
from infrarsi.reading.project import CallSite
from infrarsi.reading.trainers.accelerate import accumulation
from infrarsi.reading.trainers.deepspeed import MICRO, ROWS, STEPS, batch_sizes, configuration
from infrarsi.reading.trainers.devices import lightning_world
from infrarsi.reading.trainers.settings import settings_of
from infrarsi.reading.trainers.training_arguments import SFT_CONFIG, TRAINING_ARGUMENTS
from infrarsi.reading.values import Known, Made, Many, Origin, Unknown, Value

ENGINE = "deepspeed.DeepSpeedEngine"
_PARTS = ("optimizer", "training_dataloader", "lr_scheduler")
_FIRST = {
    "is_main_process": True,
    "is_local_main_process": True,
    "is_global_zero": True,
    "process_index": 0,
    "local_process_index": 0,
    "global_rank": 0,
    "local_rank": 0,
}
_PASSING = {
    "Accelerator": {"prepare", "prepare_model", "prepare_optimizer", "prepare_data_loader"},
    "Fabric": {"setup", "setup_module", "setup_optimizers", "setup_dataloaders"},
}


def library_attribute(evaluator: Evaluator, made: Made, name: str) -> Value | None:
    """An attribute of a library's object; None where it is none that is known."""
    kind = made.callee.rpartition(".")[2]
    if kind in {"Accelerator", "Fabric"}:
        return _of_launcher(evaluator, made, kind, name)
    if made.callee.startswith(("transformers.", "trl.")):
        defaults = {"TrainingArguments": TRAINING_ARGUMENTS, "SFTConfig": SFT_CONFIG}.get(kind)
        if defaults is not None:
            own = "per_device_train_batch_size" if name == "train_batch_size" else name
            return settings_of(evaluator, made, defaults).get(own)
    return None


def library_method(
    evaluator: Evaluator, made: Made, name: str, node: ast.Call, frame: Frame
) -> Value | None:
    """What a method of a library's object gives; None where it is none that is known."""
    kind = made.callee.rpartition(".")[2]
    if name in _PASSING.get(kind, ()):
        return _passed(evaluator, node, frame)
    sizes = {"train_batch_size": ROWS, "train_micro_batch_size_per_gpu": MICRO}
    sizes["gradient_accumulation_steps"] = STEPS
    if made.callee == ENGINE and name in sizes:
        config = configuration(evaluator, CallSite(made.call, made.frame.scope))
        return batch_sizes(evaluator, config)[sizes[name]]
    return None


def library_function(name: str, node: ast.Call, frame: Frame) -> Value | None:
    """What `deepspeed.initialize` gives: engine, optimizer, loader and schedule."""
    if name != "deepspeed.initialize":
        return None
    made = Made(ENGINE, node, frame)
    return Many((made, *(Made(f"{ENGINE}.{part}", node, frame) for part in _PARTS)))


def _of_launcher(evaluator: Evaluator, made: Made, kind: str, name: str) -> Value | None:
    if name in _FIRST:
        return Known(_FIRST[name])
    n_processes = evaluator.launch.n_processes
    if kind == "Fabric" and name == "world_size":
        return lightning_world(evaluator, settings_of(evaluator, made, {"num_nodes": 1}))
    if kind == "Accelerator" and name == "num_processes":
        return Known(n_processes, (Origin("launcher", "world_size", n_processes),))
    if kind == "Accelerator" and name == "gradient_accumulation_steps":
        return accumulation(evaluator, settings_of(evaluator, made, {}))
    return None


def _passed(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Value:
    if any(isinstance(argument, ast.Starred) for argument in node.args) or not node.args:
        return Unknown("what is handed through a library is not written in plain sight")
    values = tuple(evaluator.value(argument, frame) for argument in node.args)
    return values[0] if len(values) == 1 else Many(values)
