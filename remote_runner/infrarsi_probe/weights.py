"""Parameters by name, and a small sample of them that tells whether a step changed weights."""

import torch

WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")
N_SAMPLES = 8
N_ELEMENTS = 64


def unwrapped(root):
    """The module inside compile and data-parallel wrappers. Never tests a module's truth."""
    while True:
        if "_orig_mod" in root._modules:
            root = root._modules["_orig_mod"]
        elif type(root).__name__ in ("DistributedDataParallel", "DataParallel"):
            root = root.module
        else:
            return root


def clean_name(name):
    """A parameter's name without what compile, checkpoint and FSDP wrappers add."""
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def parameter_names(root):
    """{id of parameter: name} of a root module."""
    return {id(p): clean_name(n) for n, p in unwrapped(root).named_parameters()}


def local(tensor):
    """This rank's part of a sharded tensor; any other tensor itself."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class WeightSample:
    """A few elements of a few parameters, compared between two moments without a sync."""

    def __init__(self, parameters):
        usable = [p for p in parameters if p.is_floating_point() and local(p).numel() > 0]
        usable.sort(key=lambda p: -local(p).numel())
        wide = [p for p in usable if local(p).numel() >= N_ELEMENTS] or usable
        self._parameters = wide[:: max(1, len(wide) // N_SAMPLES)][:N_SAMPLES]
        sizes = [local(p).numel() for p in self._parameters]
        self._width = min([N_ELEMENTS, *sizes]) if sizes else 0

    def take(self):
        """Copies of the sampled elements, float32 [samples, elements], or None."""
        if not self._width:
            return None
        with torch.no_grad():
            parts = [local(p).detach().reshape(-1)[: self._width] for p in self._parameters]
            return torch.cat([p.to(torch.float32) for p in parts]).view(len(parts), -1)


def n_changed(before, after):
    """Samples that differ, as a scalar tensor; None where either is missing."""
    if before is None or after is None or before.shape != after.shape:
        return None
    return (before != after).any(1).sum()
