"""A trial's outcome. Expected failures are values; out of memory is an observation."""

from typing import Annotated, Literal

from pydantic import Field

from infrarsi.contract.violation import Violation
from infrarsi.frozen import Frozen
from infrarsi.knobs import Candidate


class Completed(Frozen):
    """It ran its window. `step_time_s` is the median of outside step times (max over ranks)."""

    kind: Literal["completed"] = "completed"
    step_time_s: float
    step_times_s: tuple[float, ...] = ()
    cpu_s_per_step: float | None = None
    peak_mem_bytes: int
    loss: float | None = None


class OutOfMemory(Frozen):
    """Right-censored: the peak is at least `at_least_bytes` (value reached plus failed request)."""

    kind: Literal["oom"] = "oom"
    at_least_bytes: int
    limit_bytes: int | None = None
    requested_bytes: int | None = None
    rank: int = 0


class Rejected(Frozen):
    """The static check or the judge refused it. Teaches neither speed nor its claim."""

    kind: Literal["rejected"] = "rejected"
    violations: tuple[Violation, ...]


class Unstable(Frozen):
    """NaN or infinite losses or weights."""

    kind: Literal["nan"] = "nan"
    step: int


class TimedOut(Frozen):
    """No window within the limit."""

    kind: Literal["timeout"] = "timeout"
    limit_s: float
    last_step: int | None = None


class Crashed(Frozen):
    """The job ended before its window; `cause` is one sentence, `log_tail` its last lines."""

    kind: Literal["crashed"] = "crashed"
    cause: str
    exit_code: int | None = None
    signal: int | None = None
    log_tail: str = ""


Outcome = Annotated[
    Completed | OutOfMemory | Rejected | Unstable | TimedOut | Crashed,
    Field(discriminator="kind"),
]


class Trial(Frozen):
    """A candidate's runs and what came of them."""

    number: int
    candidate: Candidate
    origin: str = "search"
    outcome: Outcome | None = None
    wall_s: float = 0.0
    predicted_step_time_s: tuple[float, float, float] | None = None
    predicted_p_fit: float | None = None
