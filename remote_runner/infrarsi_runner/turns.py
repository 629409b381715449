"""Process pairs: two live jobs take turns on the machine, the one that waits is stopped.

The runner owns the clock and the turns; each side only ever sees its own steps go by. The order
within a couple of turns is drawn, so is the couple after which an audited turn of the candidate
comes and the step that is audited. Which side starts first is the caller's to balance.
"""

import itertools
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from infrarsi.pair import ProcessPair, Turn
from infrarsi.wire.probe import AuditCommand, StopCommand
from infrarsi_runner.live_job import LiveJob
from infrarsi_runner.outcomes import SHORTEST_STEP_S
from infrarsi_runner.run_spec import PairResult, RunSpec, Side, never_ran
from infrarsi_runner.site import Site

__all__ = ["PairResult", "take_turns"]

_STEPS_AHEAD = 3
"""How far beyond the furthest step any rank has ended a command is placed: the next may be under
way on another rank, and the probe needs two steps' notice."""


_MOST_STEPS = 200
"""In a turn that is measured by its length."""


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """A planned turn; an audited one is not timed."""

    side: Side
    audited: bool = False


class _Over(Exception):
    """A side ended, or could not be stopped, before the turns were over."""

    def __init__(self, side: Side) -> None:
        """Keep which one."""
        super().__init__(side)
        self.side: Side = side


def take_turns(
    specs: Mapping[Side, RunSpec],
    site: Site,
    *,
    first: Side,
    turn_pairs: int,
    steps_per_turn: int,
    audit: bool,
    natural: bool = False,
    shortest_turn_s: float = 0.0,
    rng: random.Random,
) -> PairResult:
    """Run both jobs to the end of their turns; a turn times `steps_per_turn` - 1 steps or more.

    It goes on until it has lasted `shortest_turn_s`, which short steps need to be told from noise.
    With `natural` a second step of the audited turn is dumped with dropout as it is. Both jobs
    must fit on the machine at once. Raises as `Runs.execute` does.
    """
    second: Side = "candidate" if first == "baseline" else "baseline"
    turns: list[Turn] = []
    audited: list[int] = []
    dropping: list[int] = []
    failed: Side | None = None
    with ExitStack() as stack:
        jobs: dict[Side, LiveJob] = {}
        try:
            for side in (first, second):
                jobs[side] = stack.enter_context(LiveJob(specs[side], site))
                _run_until(side, jobs[side], max(0, specs[side].warmup_steps - 1))
            for turn in _plan(turn_pairs, audit=audit, rng=rng):
                if turn.audited:
                    step = _audited_turn(turn.side, jobs[turn.side], steps_per_turn, natural, rng)
                    audited.append(step)
                    dropping += [step + 1] * natural
                else:
                    turns.append(_turn(turn.side, jobs[turn.side], steps_per_turn, shortest_turn_s))
            for side, job in jobs.items():
                _end_well(side, job)
        except _Over as over:
            failed = over.side
            for job in jobs.values():
                job.kill("stopped")
        results = {side: job.result() for side, job in jobs.items()}
    pair = ProcessPair(started_first=first, turns=tuple(turns)) if failed is None else None
    never = never_ran(site.sandbox.level)
    return PairResult(
        pair=pair,
        baseline=results.get("baseline", never),
        candidate=results.get("candidate", never),
        audited_steps=tuple(audited),
        natural_steps=tuple(dropping),
        failed=failed,
    )


def _plan(turn_pairs: int, *, audit: bool, rng: random.Random) -> Iterator[_Turn]:
    """Couples of turns in drawn order, one audited turn of the candidate at a drawn place."""
    audited_after = rng.randint(1, max(1, turn_pairs - 1)) if audit else 0
    sides: list[Side] = ["baseline", "candidate"]
    for couple in range(1, turn_pairs + 1):
        rng.shuffle(sides)
        yield from (_Turn(side=side) for side in sides)
        if couple == audited_after:
            yield _Turn(side="candidate", audited=True)


def _turn(side: Side, job: LiveJob, steps_per_turn: int, shortest_s: float) -> Turn:
    """One timed turn. Its first step began before the pause and its second is dropped."""
    last = job.last_step()
    outside_s = job.resume()
    n_steps = _n_steps(side, job, last, steps_per_turn, shortest_s)
    _run_until(side, job, last + n_steps + 1)
    ends = dict(job.steps())
    times = [ends[last + k] for k in range(1, n_steps + 2)]
    durations = [max(b - a, SHORTEST_STEP_S) for a, b in itertools.pairwise(times)]
    return Turn(side=side, steps_s=tuple(durations[1:]), cpu_outside_turn_s=outside_s)


def _n_steps(side: Side, job: LiveJob, last: int, at_least: int, shortest_s: float) -> int:
    """How many steps the turn has, by how long its first ones take."""
    if not shortest_s:
        return at_least
    if not job.wait_for_step(last + at_least):
        raise _Over(side)
    ends = job.steps()
    step_s = (ends[last + at_least] - ends[last + 1]) / (at_least - 1)
    return max(at_least, min(_MOST_STEPS, round(shortest_s / max(step_s, SHORTEST_STEP_S))))


def _audited_turn(
    side: Side, job: LiveJob, steps_per_turn: int, natural: bool, rng: random.Random
) -> int:
    """A turn of the same length in which one drawn step is dumped; that step's index."""
    last, furthest = job.last_step(), job.control.last_index() or 0
    step = furthest + _STEPS_AHEAD + rng.randrange(max(1, steps_per_turn - _STEPS_AHEAD))
    job.send(AuditCommand(step=step))
    if natural:
        job.send(AuditCommand(step=step + 1, natural=True))
    job.resume()
    _run_until(side, job, max(step + 2, last + steps_per_turn + 1))
    return step


def _run_until(side: Side, job: LiveJob, index: int) -> None:
    """Let a job that is not paused end that step, and pause it."""
    if not job.wait_for_step(index) or not job.pause():
        raise _Over(side)


def _end_well(side: Side, job: LiveJob) -> None:
    """Let a paused job leave cleanly, a few steps on."""
    job.send(StopCommand(after=(job.control.last_index() or 0) + _STEPS_AHEAD))
    job.resume()
    job.wait_for_end()
    if not job.ended_well():
        raise _Over(side)
