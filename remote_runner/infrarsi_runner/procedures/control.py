"""The control: the baseline against itself, under the very scheme that confirms candidates."""

from collections.abc import Callable

from infrarsi.contract.contract import Protocol
from infrarsi.errors import JobFailed
from infrarsi.frozen import Frozen
from infrarsi.pair import ProcessPair, Unit
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.drawing import draw
from infrarsi_runner.procedures.job import Job, require_completed
from infrarsi_runner.running import Side, outcome_of

MOST_UNITS = 2
WITHIN_S = 300.0
"""A second unit makes every later confirmation shorter, where it is cheap: one unit alone asks of
a gain to stand 7 standard errors above zero at the first look, two ask 5.5."""

START_S = 10.0
"""What starting and ending the two processes of a pair takes, about."""

SIDES: tuple[Side, Side] = ("baseline", "candidate")


class ControlPair(Frozen):
    """A pair of the baseline with itself, and what it took in all, s of wall clock."""

    pair: ProcessPair
    wall_s: float


def n_control_units(protocol: Protocol, step_time_s: float) -> int:
    """How many units doctor measures: by what they cost, never by what they show."""
    return max(1, min(MOST_UNITS, int(WITHIN_S / unit_cost_s(protocol, step_time_s))))


def unit_cost_s(protocol: Protocol, step_time_s: float) -> float:
    """What a control unit takes, about, s of wall clock."""
    steps = 2 * protocol.turn_pairs * (protocol.steps_per_turn + 1) + 4
    return 2 * (steps * step_time_s + START_S)


def control_units(
    context: Context, job: Job, n_units: int, said: Callable[[int, Side], None]
) -> tuple[tuple[Unit, ...], float]:
    """The control's units, and what one takes, s of wall clock.

    Args:
        context: the campaign's.
        job: the baseline.
        n_units: how many.
        said: told of each pair before it runs, by unit and the side that starts first.

    Raises:
        JobFailed: the baseline cannot run beside itself.
    """
    made: list[ControlPair] = []
    for number in range(n_units):
        for first in SIDES:
            said(number, first)
            made.append(
                context.once(
                    f"doctor/control/{number}/{first}",
                    ControlPair,
                    lambda number=number, first=first: _control_pair(context, job, number, first),
                )
            )
    pairs = [control.pair for control in made]
    units = tuple(Unit(pairs=(a, b)) for a, b in zip(pairs[::2], pairs[1::2], strict=True))
    return units, sum(control.wall_s for control in made) / n_units


def _control_pair(context: Context, job: Job, number: int, first: Side) -> ControlPair:
    started_s = context.now_s()
    pair = _aa_pair(context, job, number, first)
    return ControlPair(pair=pair, wall_s=context.now_s() - started_s)


def _aa_pair(context: Context, job: Job, number: int, first: Side) -> ProcessPair:
    protocol = job.lock.contract.protocol
    spec = job.spec("timed", "noise")
    result = context.runs.pair(
        spec,
        spec,
        first=first,
        turn_pairs=protocol.turn_pairs,
        steps_per_turn=protocol.steps_per_turn,
        audit=False,
        rng=draw(context, "control", number, first),
    )
    if result.pair is None:
        failed = result.baseline if result.failed == "baseline" else result.candidate
        require_completed(outcome_of(failed, spec), "in a pair with itself")
        raise JobFailed(
            "Two copies of the baseline could not take turns on this machine.",
            "Free memory or lower memory_limit_gib, so that both fit at once.",
        )
    return result.pair
