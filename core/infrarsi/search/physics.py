"""A job's settings put through the analytic estimate, for the models to start from.

Leaves out what `estimate` does not know: patches and knobs without a role.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from infrarsi.estimate.job import UnreadableJob, read_job
from infrarsi.estimate.physics import Physics, physics
from infrarsi.models.encoding import Encoding, Floats, Rows
from infrarsi.search.roles import Role, columns_of, find_roles
from infrarsi.units import GIB

_EFFICIENCY = 0.6
"""Share of the peak that large matrix products reach."""
_OVERLAPPED = 0.5
"""Share of data parallel communication that is not hidden behind the backward pass."""


class JobPhysics:
    """Estimates by row, each distinct one made once."""

    def __init__(self, encoding: Encoding, job: Mapping[str, Any], roles: dict[str, Role]) -> None:
        """Keep the job's facts; `roles` are of the encoding's knobs."""
        self._encoding = encoding
        self._job = dict(job)
        self._roles = roles
        self._columns = [i for i, k in enumerate(encoding.knobs) if k.name in roles]
        self._known: dict[bytes, tuple[Floats, Floats]] = {}

    def time_s(self, rows: Rows) -> Floats:
        """Estimated step time: computation, memory traffic, model and data parallel links, s."""
        return np.asarray([self._of(row)[0] for row in rows], dtype=np.float64)

    def memory_gib(self, rows: Rows) -> Floats:
        """Estimated peak of one device by component, GiB, shape (n, n_components)."""
        return np.asarray([self._of(row)[1] for row in rows], dtype=np.float64)

    def _of(self, row: Rows) -> tuple[Floats, Floats]:
        key = row[self._columns].tobytes()
        if key not in self._known:
            self._known[key] = self._estimate(row)
        return self._known[key]

    def _estimate(self, row: Rows) -> tuple[Floats, Floats]:
        columns = columns_of(self._encoding.setting(row), self._roles)
        made = physics(read_job({**self._job, **columns}))
        terms = np.asarray(list(made.memory_bytes.values()), dtype=np.float64) / GIB
        return _time_s(made), terms


def _time_s(made: Physics) -> Floats:
    """Serial parts; the bubble stretches what is inside the pipeline."""
    stretched = 1 / (1 - made.bubble_frac)
    links = {name: volume.seconds for name, volume in made.communication.items()}
    outside = _OVERLAPPED * links.pop("dp", 0.0)
    inside = [made.compute_s / _EFFICIENCY, made.traffic_s, sum(links.values())]
    return np.asarray([*(stretched * part for part in inside), outside], dtype=np.float64)


def job_physics(encoding: Encoding, job: Mapping[str, Any] | None) -> JobPhysics | None:
    """Estimates for an encoding's rows, or None where too little is known of the job for any."""
    roles = find_roles(encoding.knobs)
    if not job or not roles:
        return None
    try:
        found = JobPhysics(encoding, job, roles)
        found.time_s(encoding.rows([{}]))
    except UnreadableJob:
        return None
    return found
