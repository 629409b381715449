"""Estimate: step time and memory of described jobs, one JSON object a line; no run, no GPU."""

import json
from collections.abc import Iterable, Iterator

from pydantic import RootModel

from infrarsi.estimate import Estimate, UnreadableJob, estimate_job
from infrarsi.frozen import Frozen


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
    try:
        return estimate_job(job)
    except UnreadableJob as error:
        return Unanswered(error=str(error))
