"""Estimate: step time and memory of described jobs, one JSON object a line; no run, no GPU."""

import importlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from infrarsi.errors import InfraRSIError

_NOT_BUILT = "Analytic estimates are not built yet."


def estimate_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """One answer for each line that is not blank; what cannot be answered is an `error`."""
    for line in lines:
        if line.strip():
            yield _estimate_line(line)


def _estimate_line(line: str) -> dict[str, Any]:
    try:
        job = json.loads(line)
    except ValueError as error:
        return {"error": f"Not a JSON object: {error}."}
    if not isinstance(job, dict):
        return {"error": "Not a JSON object."}
    estimate = getattr(importlib.import_module("infrarsi.estimate"), "estimate_job", None)
    if estimate is None:
        return {"error": _NOT_BUILT}
    try:
        return estimate(job)
    except InfraRSIError as error:
        return {"error": str(error)}
