"""FLOPs of one preflight step, by dtype, and the part that is attention.

One convention for every way to write attention: two products forward, four backward, no
recomputation (the registry of torch counts five for its fused backward and none on the CPU).
Activation checkpointing does count its recomputation. The dispatch mode would leave compiled
code eager for good, so compilation is forced off for the step (and in preflight altogether).
"""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from infrarsi_probe.plans import Plan

COUNTED_STEP = 1
BATCHED = {"bmm", "baddbmm"}
FUSED = "_scaled_dot_product"


def _dtype(args):
    for a in args:
        if isinstance(a, torch.Tensor) and a.is_floating_point():
            return str(a.dtype)[6:]
    return "unknown"


def _fused_attention(name, args):
    """FLOPs of a fused attention call from its shapes [batch, heads, sequence, dim]."""
    backward = name.endswith("_backward")
    query, key, value = args[1:4] if backward else args[:3]
    batch, heads, n_query, dim = query.shape
    forward = 2 * batch * heads * n_query * key.shape[-2] * (dim + value.shape[-1])
    return 2 * forward if backward else forward


def _square_sizes(name, args):
    first, second = args[-2:] if name == "bmm" else args[1:3]
    m, k, n = first.shape[-2], first.shape[-1], second.shape[-1]
    return {size for size, other in ((m, n), (m, k), (k, n)) if size == other}


class FlopCounter(TorchDispatchMode):
    """Counts while it is entered."""

    def __init__(self):
        super().__init__()
        self.total = 0
        self.by_dtype = {}
        self.fused = 0
        self.squares = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Count one operator; composite ones are taken apart first."""
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        packet = func._overloadpacket
        name = packet.__name__
        known = packet in flop_registry or name.startswith(FUSED)
        if not known and func is not torch.ops.prim.device.default:
            with self:
                parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
        out = func(*args, **kwargs)
        if known:
            self._count(packet, name, args, kwargs, out)
        return out

    def _count(self, packet, name, args, kwargs, out):
        if name.startswith(FUSED):
            flops = _fused_attention(name, args)
            self.fused += flops
        else:
            flops = int(flop_registry[packet](*args, **kwargs, out_val=out))
        self.total += flops
        kind = _dtype(args)
        self.by_dtype[kind] = self.by_dtype.get(kind, 0) + flops
        if name in BATCHED:
            for size in _square_sizes(name, args):
                self.squares[size] = self.squares.get(size, 0) + flops

    def attention(self, seq_len):
        """FLOPs of batched products with a square of the sequence length, and of fused calls."""
        return self.fused + self.squares.get(seq_len, 0)


class FlopPlan(Plan):
    """Counts the second step: the first may hold one-time work."""

    def __init__(self, session):
        self._session = session
        self._counter = None
        self._seq_len = None
        self._done = None

    def opens(self, index):
        """Start counting."""
        if index == COUNTED_STEP:
            _force_eager(True)
            self._counter = FlopCounter()
            self._counter.__enter__()

    def closes(self, index):
        """Stop counting."""
        if self._counter is None:
            return
        self._counter.__exit__(None, None, None)
        _force_eager(False)
        self._done, self._counter = self._counter, None
        self._seq_len = self._session.roots.seq_len()

    def finishes(self):
        """The job ended within the step."""
        self._counter = None

    def evidence(self):
        """The FlopCount, where the step was whole."""
        if self._done is None:
            return {}
        done = self._done
        attention = done.attention(self._seq_len)
        return {"flops": {"total": done.total, "attention": attention, "by_dtype": done.by_dtype}}


def _force_eager(on):
    stance = getattr(torch.compiler, "set_stance", None)
    if stance is not None and "torch._dynamo" in sys.modules:
        stance("force_eager" if on else "default")
