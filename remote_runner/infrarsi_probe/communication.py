"""Communication that the job waits for: collectives called from Python, and DDP's by ablation.

DDP reduces inside backward, in C++ and overlapped, so only its absence tells its cost: on
alternate steps backward runs without the reduction, and what backward takes longer with it is
exposed. (Ranks drift apart by that; the profile's weights are thrown away.)
"""

import functools

import torch

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
)


def _timed(real, phases):
    @functools.wraps(real)
    def call(*args, **kwargs):
        phases.enter("communication")
        try:
            return real(*args, **kwargs)
        finally:
            phases.leave()

    return call


def time_collectives(phases):
    """Charge Python-level collectives and waits for them to communication, from now on."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    for name in COLLECTIVES:
        real = getattr(distributed, name, None)
        if real is not None:
            setattr(distributed, name, _timed(real, phases))
    distributed.Work.wait = _timed(distributed.Work.wait, phases)


def data_parallel_of(module):
    """The DistributedDataParallel in a root, or None."""
    while module is not None:
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            return module
        module = module._modules.get("_orig_mod")
    return None


class Ablation:
    """Switches DDP's reduction off for a forward and its backward."""

    def __init__(self):
        self._held = None

    def begins(self, root):
        """Before a forward: no reduction in its backward."""
        module = data_parallel_of(root)
        if module is not None and self._held is None:
            self._held = (module, module.require_backward_grad_sync)
            module.require_backward_grad_sync = False

    def ends(self):
        """After the forward: as the script had it."""
        if self._held is not None:
            module, before = self._held
            module.require_backward_grad_sync = before
            self._held = None
