"""Shifts the seeds a script sets, the same way in both arms, so that replayed runs show.

`torch.manual_seed`, `random.seed` and `numpy.random.seed` called with an integer get the offset
added; scripts that never seed get a start that depends on offset and rank only. Objects with a
seed of their own are shifted in `generators`.
"""

import functools
import random
import sys

from infrarsi_probe import generators
from infrarsi_probe.import_hook import after_import

NUMPY_LIMIT = 1 << 32
RANK_STRIDE = 7919


def _shifted(real, offset, limit=None):
    @functools.wraps(real)
    def seed(value=None, *args, **kwargs):
        if isinstance(value, int) and not isinstance(value, bool):
            value = (value + offset) % limit if limit else value + offset
        return real(value, *args, **kwargs)

    return seed


def _shift_random(offset, rank):
    random.seed(offset + RANK_STRIDE * rank)
    random.seed = _shifted(random.seed, offset)
    generators.shift_random_objects(offset)


def _shift_numpy(offset, rank):
    module = sys.modules["numpy.random"]
    module.seed((offset + RANK_STRIDE * rank) % NUMPY_LIMIT)
    module.seed = _shifted(module.seed, offset, NUMPY_LIMIT)
    generators.shift_numpy_objects(module, offset)


def shift_torch(torch, offset):
    """Seed torch and shift its later seeds; called once torch is imported.

    Returns whether those of `torch.Generator` objects could be shifted too.
    """
    real = torch.random.manual_seed
    real(offset)

    @functools.wraps(real)
    def manual_seed(seed):
        return real(int(seed) + offset)

    torch.random.manual_seed = torch.manual_seed = manual_seed
    return generators.shift_torch_objects(torch, offset)


def shift_seeds(offset, rank):
    """Shift the seeds of `random` now and of numpy once it is imported."""
    _shift_random(offset, rank)
    after_import("numpy.random", lambda: _shift_numpy(offset, rank))
