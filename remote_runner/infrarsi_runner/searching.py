"""The searcher in a child process: the daemon itself never fits anything.

The child is deterministic in its seed and what it was told, so a resumed campaign starts a new
one and tells it the journalled trials again.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from infrarsi.errors import RunnerError
from infrarsi.knobs import Setting, Space
from infrarsi.patches import Recipe
from infrarsi.trial import Completed, Outcome, OutOfMemory, Rejected
from infrarsi.units import GIB

JsonObject = dict[str, Any]


class SearchChild:
    """One searcher, spoken to in JSON lines over pipes. Use as a context manager."""

    def __init__(
        self, space: Space, recipes: Sequence[Recipe], job: Mapping[str, float], seed: int
    ) -> None:
        """Start the child and open the search over `space`."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "infrarsi.search"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._request(
            {
                "op": "start",
                "space": plain(space),
                "claims": [_claim(recipe) for recipe in recipes],
                "conflicts": [
                    {recipe.name: True, other: True}
                    for recipe in recipes
                    for other in recipe.conflicts
                ],
                "job": dict(job),
                "seed": seed,
            }
        )

    def ask(self) -> Setting | None:
        """The next setting to try; None where every allowed one was tried."""
        return self._request({"op": "ask"})

    def tell(self, setting: Setting, outcome: Outcome) -> None:
        """What came of a setting."""
        self._request({"op": "tell", "setting": setting, "outcome": told(outcome)})

    def predict(self, settings: list[Setting]) -> list[JsonObject]:
        """Predictions as `Searcher.predict` gives them."""
        return self._request({"op": "predict", "settings": settings})

    def close(self) -> None:
        """End the child."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def __enter__(self) -> Self:
        """The child itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """End the child whatever happened."""
        self.close()

    def _request(self, message: JsonObject) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RunnerError("The search process ended unexpectedly.", "See the runner's log.")
        answer = json.loads(line)
        if not answer["ok"]:
            raise RunnerError(f"The search refused a request: {answer['what']}", answer["do"])
        return answer["result"]


def plain(space: Space) -> JsonObject:
    """The space as the public search API takes it."""
    return {
        "knobs": {
            knob.name: {
                "type": knob.type,
                "choices": list(knob.choices),
                "kind": knob.kind,
                "default": knob.default,
            }
            for knob in space.knobs
        }
    }


def _claim(recipe: Recipe) -> JsonObject:
    return {
        "knob": recipe.name,
        "value": True,
        "log_speedup": recipe.claim.log_speedup,
        "sd": recipe.claim.sd,
        "memory_role": recipe.memory_role,
    }


def told(outcome: Outcome) -> JsonObject:
    """The outcome as the public search API takes it."""
    if isinstance(outcome, Completed):
        return {
            "status": "ok",
            "step_time_s": outcome.step_time_s,
            "peak_mem_gib": outcome.peak_mem_bytes / GIB,
        }
    if isinstance(outcome, OutOfMemory):
        return {"status": "oom", "mem_at_least_gib": outcome.at_least_bytes / GIB}
    if isinstance(outcome, Rejected):
        return {"status": "rejected", "code": outcome.violations[0].code}
    return {"status": outcome.kind}
