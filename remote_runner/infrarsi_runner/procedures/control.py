"""The control: the baseline against itself, under the very scheme that confirms candidates."""

from collections.abc import Callable

from infrarsi.errors import JobFailed
from infrarsi.frozen import Frozen
from infrarsi.pair import ProcessPair, Unit
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.drawing import draw
from infrarsi_runner.procedures.job import Job, require_completed
from infrarsi_runner.running import Side, outcome_of

N_CONTROL_UNITS = 2
SIDES: tuple[Side, Side] = ("baseline", "candidate")


class ControlPair(Frozen):
    """A pair of the baseline with itself, and what it took in all, s of wall clock."""

    pair: ProcessPair
    wall_s: float


def control_units(
    context: Context, job: Job, said: Callable[[int, Side], None]
) -> tuple[tuple[Unit, ...], float]:
    """The control's units, and what one takes, s of wall clock.

    Args:
        context: the campaign's.
        job: the baseline.
        said: told of each pair before it runs, by unit and the side that starts first.

    Raises:
        JobFailed: the baseline cannot run beside itself.
    """
    made: list[ControlPair] = []
    for number in range(N_CONTROL_UNITS):
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
    return units, sum(control.wall_s for control in made) / N_CONTROL_UNITS


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
