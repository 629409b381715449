"""Estimate: step time and memory of described jobs, one JSON object a line; no run, no GPU.

Only the shape of the answer is here so far: every line says that estimates are not built yet.
"""

import json
from collections.abc import Iterable, Iterator

from pydantic import RootModel

from infrarsi.frozen import Frozen

_NOT_BUILT = "Estimates of described jobs are not built yet."


class Bounds(Frozen):
    """A value with its interval."""

    value: float
    low: float
    high: float


class Estimate(Frozen):
    """What is expected of one described job. `omitted` names what the model leaves out."""

    step_time_s: Bounds
    tokens_per_s_per_gpu: Bounds
    mfu_frac: Bounds
    peak_mem_gib: Bounds
    p_fit: float
    memory_terms_gib: dict[str, float]
    omitted: tuple[str, ...]


class Unanswered(Frozen):
    """Why a line has no estimate."""

    error: str


class EstimateLine(RootModel[Estimate | Unanswered]):
    """One line of the answer."""


def estimate_lines(lines: Iterable[str]) -> Iterator[EstimateLine]:
    """One answer for each line that is not blank; what cannot be answered is an `error`."""
    for line in lines:
        if line.strip():
            yield EstimateLine(_estimate_line(line))


def _estimate_line(line: str) -> Estimate | Unanswered:
    try:
        job = json.loads(line)
    except ValueError as error:
        return Unanswered(error=f"Not JSON: {error}.")
    if not isinstance(job, dict):
        return Unanswered(error="Not a JSON object.")
    return Unanswered(error=_NOT_BUILT)
