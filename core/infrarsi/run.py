"""A run: one process group executed once in one mode, and what was observed from outside it."""

from typing import Literal

from infrarsi.frozen import Frozen

Mode = Literal["preflight", "timed", "profile", "redo", "endurance"]
"""preflight: discovery, compile off. timed: ticks, and the audit at steps named after launch.
profile: phases and lines. redo: the baseline takes the candidate's steps. endurance: N steps,
spawn to exit; to the job it looks like timed, and it learns of N on the way."""

RunEnd = Literal["finished", "stopped", "exit", "signal", "out_of_memory", "timeout", "cancelled"]
"""finished: the probe ended the job after its window. stopped: by the runner after its turns."""


class OutsideStep(Frozen):
    """One step as the runner saw it: its tick's arrival, in s of the runner's monotonic clock."""

    rank: int
    index: int
    at_s: float


class RunObservation(Frozen):
    """What the runner itself saw of a run; nothing here comes from the job's own process."""

    end: RunEnd
    exit_code: int | None = None
    signal: int | None = None
    wall_s: float
    cpu_s: float
    peak_rss_bytes: tuple[int, ...] = ()
    steps: tuple[OutsideStep, ...] = ()
    cpu_outside_turn_s: float = 0.0
    sandbox_level: str = ""
    log_tail: str = ""
