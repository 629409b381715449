"""Shifts the seeds given to generator objects, as `seeds` does for the global ones.

Covers `random.Random`, what `numpy.random` constructs from integers, and
`torch.Generator.manual_seed`. A `torch.Generator` that is never seeded keeps torch's fixed start.
"""

import ctypes
import functools
import gc
import numbers
import random

TORCH_LIMIT = 1 << 64
LEGACY_LIMIT = 1 << 32
NUMPY_MODERN = ("SeedSequence", "PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def shifted(value, offset, limit=None):
    """`value` plus `offset` where it is an integer; of several integers, with one more."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        total = int(value) + offset
        return total % limit if limit else total
    if isinstance(value, (list, tuple)):
        return [*value, offset]
    return value


def shift_random_objects(offset):
    """Shift what `random.Random` objects are seeded with; `random.seed` is bound already."""
    real = random.Random.seed

    @functools.wraps(real)
    def seed(self, a=None, *args, **kwargs):
        if isinstance(a, numbers.Integral):
            a = shifted(a, offset)
        return real(self, a, *args, **kwargs)

    random.Random.seed = seed


def shift_numpy_objects(module, offset):
    """Shift `default_rng`, `RandomState` and the bit generators of `numpy.random`."""
    real = module.default_rng

    @functools.wraps(real)
    def default_rng(seed=None):
        return real(shifted(seed, offset))

    module.default_rng = default_rng
    module.RandomState = _shifted_class(module.RandomState, offset, LEGACY_LIMIT)
    for name in NUMPY_MODERN:
        if hasattr(module, name):
            setattr(module, name, _shifted_class(getattr(module, name), offset))


def _shifted_class(real, offset, limit=None):
    """A subclass for which every object of `real` is one of its own."""

    class Meta(type(real)):
        def __instancecheck__(cls, value):
            return isinstance(value, real)

        def __subclasscheck__(cls, other):
            return issubclass(other, real)

    def start(self, seed=None, *args, **kwargs):
        if "entropy" in kwargs:
            seed = kwargs.pop("entropy")
        real.__init__(self, shifted(seed, offset, limit), *args, **kwargs)

    members = {"__init__": start, "__module__": "numpy.random", "__doc__": real.__doc__}
    if hasattr(real, "seed"):

        def seed(self, seed=None):
            return real.seed(self, shifted(seed, offset, limit))

        members["seed"] = seed
    return Meta(real.__name__, (real,), members)


def shift_torch_objects(torch, offset):
    """Shift `manual_seed` of every `torch.Generator` but the global ones.

    Its type is immutable and torch.compile knows no subclass of it, so the method is replaced in
    the type itself. Returns whether that took.
    """
    kind = torch._C.Generator
    real, default = kind.manual_seed, torch.default_generator

    @functools.wraps(real)
    def manual_seed(self, seed):
        return real(self, seed if self is default else (int(seed) + offset) % TORCH_LIMIT)

    (members,) = gc.get_referents(kind.__dict__)
    members["manual_seed"] = manual_seed
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    return torch.Generator().manual_seed(0).initial_seed() == offset % TORCH_LIMIT
