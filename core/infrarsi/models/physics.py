"""What the models may be told of a job's physics; where nothing is known they do without."""

from typing import Protocol

import numpy as np

from infrarsi.models.encoding import Floats, Rows

_TINY = 1e-6


class Physics(Protocol):
    """An analytic guess for each row; only its ratios between rows are believed."""

    def time_s(self, rows: Rows) -> Floats:
        """Expected step time by component, s, shape (n, n_components)."""
        ...

    def memory_gib(self, rows: Rows) -> Floats:
        """Expected peak of one device by component, GiB, shape (n, n_components)."""
        ...


def log_and_shares(components: Floats) -> tuple[Floats, Floats]:
    """Log of the total, shape (n,), and each component's share, shape (n, n_components).

    A share is how much the log of the total moves with the log of its component, so that a model
    linear in the shares learns by how much each component is off.
    """
    total = np.maximum(components.sum(axis=1), _TINY)
    return np.log(total), components / total[:, None]
