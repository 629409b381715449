"""A job's settings put through the analytic estimate, for the models to start from.

Leaves out what `estimate` does not know: patches and knobs without a role.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from infrarsi.estimate.calibration import tables
from infrarsi.estimate.estimating import peak_memory
from infrarsi.estimate.job import UnreadableJob, read_job
from infrarsi.estimate.parts import time_parts
from infrarsi.estimate.physics import physics, resolve_checkpointing
from infrarsi.models.encoding import Encoding, Floats, Rows
from infrarsi.search.roles import Role, columns_of, find_roles
from infrarsi.units import GIB

_TIME = ("linear|head", "attention", "traffic", "host|step", "dp")
"""Causes of time that are corrected apart; the rest is communication inside the model."""
_MEMORY = ("parameters", "gradients", "optimizer_state", "activations|working_layer", "logits")
"""Terms of memory that are corrected apart; the rest is buffers and the allocator."""


class JobPhysics:
    """Estimates by row, each distinct one made once."""

    def __init__(self, encoding: Encoding, job: Mapping[str, Any], roles: dict[str, Role]) -> None:
        """Keep the job's facts; `roles` are of the encoding's knobs."""
        self._encoding = encoding
        self._job = dict(job)
        self._roles = roles
        self._columns = [i for i, k in enumerate(encoding.knobs) if k.name in roles]
        sizes = [1, *(len(encoding.knobs[i].choices) for i in self._columns[:-1])]
        self._weights = np.cumprod(np.asarray(sizes, dtype=np.int64))
        self._known: dict[bytes, tuple[Floats, Floats]] = {}

    def time_s(self, rows: Rows) -> Floats:
        """Estimated step time by cause, s, shape (n, n_components)."""
        return self._of(rows, 0)

    def memory_gib(self, rows: Rows) -> Floats:
        """Estimated peak of one device by component, GiB, shape (n, n_components)."""
        return self._of(rows, 1)

    def _of(self, rows: Rows, quantity: int) -> Floats:
        """One quantity of each row; rows that differ in nothing estimated are asked once."""
        _, first, place = np.unique(
            rows[:, self._columns] @ self._weights, return_index=True, return_inverse=True
        )
        found = [self._kept(row)[quantity] for row in rows[first]]
        return np.stack(found)[place] if found else np.zeros((0, 1))

    def _kept(self, row: Rows) -> tuple[Floats, Floats]:
        key = row[self._columns].tobytes()
        if key not in self._known:
            self._known[key] = self._estimate(row)
        return self._known[key]

    def _estimate(self, row: Rows) -> tuple[Floats, Floats]:
        columns = columns_of(self._encoding.setting(row), self._roles)
        job = resolve_checkpointing(read_job({**self._job, **columns}))
        time_table, memory_table = tables()
        seconds = time_table.corrected(time_parts(job, physics(job)))
        held = peak_memory(job, memory_table).terms
        return _grouped(seconds, _TIME), _grouped(held, _MEMORY) / GIB


def _grouped(terms: Mapping[str, float], groups: tuple[str, ...]) -> Floats:
    """Sums of the terms whose names match each group's pattern; the last takes what is left."""
    made = np.zeros(len(groups) + 1)
    for name, size in terms.items():
        matching = [i for i, pattern in enumerate(groups) if re.match(pattern, name)]
        made[matching[0] if matching else -1] += size
    return made


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
