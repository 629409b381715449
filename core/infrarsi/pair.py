"""A pair: baseline and candidate runs set against each other in time, turn by turn."""

import math
import statistics
from typing import Literal

from infrarsi.frozen import Frozen


class Turn(Frozen):
    """One side's turn: durations of its steps in s by the outside clock, the first dropped."""

    side: Literal["baseline", "candidate"]
    steps_s: tuple[float, ...]
    cpu_outside_turn_s: float = 0.0


class ProcessPair(Frozen):
    """Two live process trees that took turns, the waiting one stopped.

    Turns come in adjacent couples (one of each side, order drawn at random).
    """

    started_first: Literal["baseline", "candidate"]
    turns: tuple[Turn, ...]
    at_once: bool = True

    def log_ratios(self) -> tuple[float, ...]:
        """One log(baseline/candidate) of median step times for each couple of turns."""
        couples = zip(self.turns[::2], self.turns[1::2], strict=True)
        return tuple(_log_ratio(a, b) for a, b in couples)

    def log_ratio(self) -> float:
        """The mean over the couples: positive where the candidate is faster."""
        return statistics.fmean(self.log_ratios())


class Unit(Frozen):
    """A balanced couple of process pairs: the baseline started first in one, second in the other.

    The job started first was 2 to 12 % slower in 14 of 14 A/A tries; balance cancels it.
    """

    pairs: tuple[ProcessPair, ProcessPair]

    def log_ratio(self) -> float:
        """Mean of the two pairs' log ratios."""
        return statistics.fmean(pair.log_ratio() for pair in self.pairs)

    def slot_log_ratio(self) -> float:
        """How much slower the job started first was: log of its step time over the other's.

        Where the pairs differ in nothing but the order, a gain of the candidate cancels out.
        """
        return statistics.fmean(
            pair.log_ratio() if pair.started_first == "baseline" else -pair.log_ratio()
            for pair in self.pairs
        )


def _log_ratio(a: Turn, b: Turn) -> float:
    times = {turn.side: statistics.median(turn.steps_s) for turn in (a, b)}
    return math.log(times["baseline"] / times["candidate"])
