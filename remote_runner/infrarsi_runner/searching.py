"""The searcher in a child process: the daemon itself never fits anything.

The child is deterministic in its seed and what it was told, so a resumed campaign starts a new
one and tells it the journalled trials again.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from infrarsi.errors import RunnerError
from infrarsi.knobs import Setting, Space
from infrarsi.patches import Recipe
from infrarsi.trial import (
    Completed,
    Crashed,
    Outcome,
    OutOfMemory,
    Rejected,
    ShortRun,
    TimedOut,
    Trial,
    Unstable,
)
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
        self._start: JsonObject = {
            "op": "start",
            "space": plain(space),
            "claims": [_claim(recipe) for recipe in recipes],
            "conflicts": [
                {recipe.name: True, other: True} for recipe in recipes for other in recipe.conflicts
            ],
            "job": dict(job),
            "seed": seed,
        }
        self._request(self._start)

    def start_again(self, **job: float) -> None:
        """Forget all that was told; these facts of the job are known better now."""
        self._start["job"] |= job
        self._request(self._start)

    def ask(self) -> Setting | None:
        """The next setting to try; None where every allowed one was tried."""
        return self._request({"op": "ask"})

    def tell(self, setting: Setting, outcome: JsonObject) -> None:
        """What came of a setting, as `Searcher.tell` takes it; see `told`."""
        self._request({"op": "tell", "setting": setting, "outcome": outcome})

    def predict(self, settings: list[Setting]) -> list[JsonObject]:
        """Predictions as `Searcher.predict` gives them."""
        return self._request({"op": "predict", "settings": settings})

    def prices(self) -> list[JsonObject]:
        """What each value costs or saves, as `Searcher.prices` gives it."""
        return self._request({"op": "prices"})

    def reliability(self) -> list[JsonObject]:
        """How much of each source's claims held so far."""
        return self._request({"op": "reliability"})

    def suspects(self, setting: Setting) -> list[Setting]:
        """Changes and pairs of changes of a setting that never stood in a good trial.

        The most suspicious first.
        """
        found = self._request({"op": "suspects", "setting": setting})
        return [dict(changes) for changes in found]

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
        "source": "recipe",
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
    if isinstance(outcome, Unstable) and outcome.step_time_s:
        return {"status": "nan", "step_time_s": outcome.step_time_s}
    if isinstance(outcome, Crashed) and is_compile_error(outcome.cause):
        return {"status": "compile_error"}
    return {"status": outcome.kind}


def told_of_trial(trial: Trial) -> JsonObject | None:
    """A trial as it is told: its anchored step time, not what was read."""
    if trial.outcome is None:
        return None
    cost = {"cost_s": trial.wall_s} if trial.wall_s else {}
    if isinstance(trial.outcome, Completed):
        return {**told(trial.outcome), **cost, "step_time_s": trial.step_time_s}
    return {**told(trial.outcome), **cost}


def told_of_short_run(run: ShortRun) -> JsonObject | None:
    """A short run as it is told: that it ran, or how it failed, never how fast it was.

    The peak is told only where the real job ran, and nothing where time ran out.
    """
    outcome = run.outcome
    if isinstance(outcome, TimedOut):
        return None
    if isinstance(outcome, Completed):
        peak = {"peak_mem_gib": outcome.peak_mem_bytes / GIB} if run.tells_memory else {}
        return {"status": "ok", **peak}
    return {k: v for k, v in told(outcome).items() if k != "step_time_s"}


_COMPILER = re.compile(
    r"torch\._(dynamo|inductor|functorch)|BackendCompilerFailed|InductorError|Unsupported:|"
    r"CompilationError|CppCompileError|triton"
)


def is_compile_error(cause: str) -> bool:
    """Whether a crash's cause is the compiler's."""
    return _COMPILER.search(cause) is not None
