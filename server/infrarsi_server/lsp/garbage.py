"""When Python looks for garbage: not while a check runs, and seldom in all that is kept.

Trees and answers are kept from one keystroke to the next by the hundred thousand, and looking
through them takes longer than a warm check.
"""

import gc
import itertools
from collections.abc import Generator
from contextlib import contextmanager

_EVERY = 64
_COUNT = itertools.count(1)


@contextmanager
def uncollected() -> Generator[None]:
    """No look for garbage inside; afterwards a full one every so often, else none at once."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _settle()
            gc.enable()


def _settle() -> None:
    """Count what was made as old: young objects alone would be looked through right now."""
    if next(_COUNT) % _EVERY == 0:
        gc.collect()
    elif not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
