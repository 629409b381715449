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
    """No look for garbage inside; what was made counts as old, or it would be looked at now."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def is_due() -> bool:
    """Whether to look through everything after this check, once it was shown."""
    return next(_COUNT) % _EVERY == 0
