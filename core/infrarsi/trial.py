"""A trial's outcome. Expected failures are values; out of memory is an observation."""

from typing import Annotated, Literal

from pydantic import Field

from infrarsi.contract.violation import Violation
from infrarsi.frozen import Frozen, Scalar
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
    """NaN or infinite losses or weights. Its step time and peak are real where they were seen."""

    kind: Literal["nan"] = "nan"
    step: int
    step_time_s: float | None = None
    peak_mem_bytes: int | None = None


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


class ShortRun(Frozen):
    """A run of two or three steps before a trial; its speed says nothing.

    `smoke` finds what does not run at all, on a job made smaller where it can be: `smaller` are the
    facts that were (`{"seq_len": 64}`), none for the real job. `memory_probe` sees the real job's
    peak, or that it does not fit.
    """

    kind: Literal["smoke", "memory_probe"]
    candidate: Candidate
    outcome: Outcome
    smaller: dict[str, Scalar] = {}
    wall_s: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the candidate cannot run. Running out of time says nothing."""
        return not isinstance(self.outcome, Completed | TimedOut)

    @property
    def tells_memory(self) -> bool:
        """Whether its peak is the real job's."""
        return isinstance(self.outcome, Completed) and not self.smaller


class Expected(Frozen):
    """What was expected of a candidate, journalled before any run of it.

    Intervals are value, low, high.
    """

    predicted_step_time_s: tuple[float, float, float] | None = None
    predicted_peak_mem_bytes: tuple[float, float, float] | None = None
    predicted_p_fit: float | None = None
    predicted_p_valid: float | None = None


class TurnedAway(Expected):
    """A candidate that failed a short run, so that it cost no trial.

    `outcome` is that run's. `blamed` is what failed alone: of its changes the fewest found.
    """

    before_trial: int
    candidate: Candidate
    outcome: Outcome
    short_runs: tuple[ShortRun, ...]
    blamed: dict[str, Scalar] = {}


class Trial(Expected):
    """A candidate's runs and what came of them.

    The outcome holds what was read. `anchored_step_time_s` is that reading divided by how much
    slower the machine was then than when the baseline was calibrated, and `reading_log_sd` its
    noise (natural log). `at_s` is when it began, s after the campaign.
    """

    number: int
    candidate: Candidate
    origin: str = "search"
    outcome: Outcome | None = None
    wall_s: float = 0.0
    at_s: float | None = None
    short_runs: tuple[ShortRun, ...] = ()
    anchored_step_time_s: float | None = None
    reading_log_sd: float | None = None

    @property
    def step_time_s(self) -> float | None:
        """The step time to compare with others: anchored where it could be, else as read."""
        if not isinstance(self.outcome, Completed):
            return None
        return self.anchored_step_time_s or self.outcome.step_time_s
