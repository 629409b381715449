"""Facts of a process and its objects that are read once: model, optimizers, device, threads."""

import gc
import sys

import torch

from infrarsi_probe.weights import clean_name, unwrapped


def distinct(objects):
    """These objects in their order, each once."""
    seen = {}
    for item in objects:
        seen.setdefault(id(item), item)
    return list(seen.values())


def parameters(optimizer):
    """An optimizer's parameters in the order of its groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def has_optimizer():
    """Whether any torch optimizer is alive. Looks at every object: for once in a while."""
    kind = torch.optim.Optimizer
    return any(issubclass(type(o), kind) for o in gc.get_objects())


def finish_in_worker(lifetime):
    """In a process started by multiprocessing exit handlers do not run: use its own."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, lifetime.at_exit, exitpriority=0)


def _optimizer_record(optimizer):
    groups = [
        {str(k): _text(v) for k, v in group.items() if k != "params"}
        for group in optimizer.param_groups
    ]
    name = type(optimizer).__name__
    return {"name": name, "groups": groups, "n_parameters": len(parameters(optimizer))}


def _text(value):
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return repr(value) if isinstance(value, (bool, int, float, str, tuple, list)) else str(value)


def _model_facts(root):
    named = [(clean_name(n), p) for n, p in unwrapped(root).named_parameters()]
    dtypes = {}
    for _, p in named:
        kind = str(p.dtype)[6:]
        dtypes[kind] = dtypes.get(kind, 0) + p.numel()
    return {
        "root_module": _class_name(unwrapped(root)),
        "device": named[0][1].device.type if named else "cpu",
        "n_parameters": sum(p.numel() for _, p in named),
        "n_trainable": sum(p.numel() for _, p in named if p.requires_grad),
        "parameter_dtypes": dtypes,
        "parameter_shapes": [(n, tuple(p.shape)) for n, p in named],
    }


def _class_name(module):
    """The user's class, not the one FSDP puts before it."""
    for kind in type(module).__mro__:
        if not kind.__module__.startswith("torch.distributed") and "FSDP" not in kind.__name__:
            return kind.__name__
    return type(module).__name__


def process_facts(session):
    """Model, optimizers and threads, as fields of RankEvidence."""
    fields = {
        "n_threads": torch.get_num_threads(),
        "optimizers": [_optimizer_record(o) for o in session.optimizers],
    }
    root = session.roots.best()
    if root is not None:
        fields.update(_model_facts(root))
    return fields
