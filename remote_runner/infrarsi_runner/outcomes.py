"""From what is left of a run to the trial's outcome. Expected failures are values here."""

import re
import statistics

from infrarsi.run import RunObservation
from infrarsi.trial import Completed, Crashed, Outcome, OutOfMemory, TimedOut, Unstable
from infrarsi.wire.probe import ProbeFailure, RankEvidence
from infrarsi_runner.run_spec import RunResult, RunSpec

_EXCEPTION_LINE = re.compile(
    r"^\s*(?:\[rank\d+\]:\s*)?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$"
)
_CAUSE_CHARS = 300

SHORTEST_STEP_S = 1e-6
"""No step is taken to be shorter: lines that arrive at once are read at the same time."""


def outcome_of(result: RunResult, spec: RunSpec) -> Outcome:
    """The outcome of a run under its spec; never Rejected, which is the judge's word."""
    observation = result.observation
    if observation.end == "out_of_memory":
        return _out_of_memory(result, spec)
    times = step_times_s(result, spec)
    if (step := _first_unstable(result.evidence)) is not None:
        return Unstable(
            step=step,
            step_time_s=statistics.median(times) if times else None,
            peak_mem_bytes=_peak_bytes(result) or None,
        )
    if observation.end == "timeout":
        return TimedOut(limit_s=spec.timeout_s, last_step=_last_step(result))
    if not times or observation.end not in ("finished", "stopped"):
        return _crashed(result, spec)
    return Completed(
        step_time_s=statistics.median(times),
        step_times_s=times,
        cpu_s_per_step=_cpu_s_per_step(result, spec),
        peak_mem_bytes=_peak_bytes(result),
        loss=_last_loss(result.evidence),
    )


def step_times_s(result: RunResult, spec: RunSpec) -> tuple[float, ...]:
    """Durations of the steps after the warm-up, s, each until its last rank ended.

    By the runner's clock where steps were announced, else as the probe recorded them.
    """
    outside = _ends_outside(result.observation) or _ends_inside(result.evidence)
    indices = sorted(i for i in outside if i - 1 in outside and i >= spec.warmup_steps)
    return tuple(max(outside[i] - outside[i - 1], SHORTEST_STEP_S) for i in indices)


def _ends_outside(observation: RunObservation) -> dict[int, float]:
    n_ranks = len({step.rank for step in observation.steps})
    return _ends([(s.index, s.at_s) for s in observation.steps], n_ranks)


def _ends_inside(evidence: tuple[RankEvidence, ...]) -> dict[int, float]:
    return _ends([(s.index, s.end_s) for e in evidence for s in e.steps], len(evidence))


def _ends(steps: list[tuple[int, float]], n_ranks: int) -> dict[int, float]:
    arrived: dict[int, list[float]] = {}
    for index, at_s in steps:
        arrived.setdefault(index, []).append(at_s)
    return {index: max(times) for index, times in arrived.items() if len(times) == n_ranks}


def _out_of_memory(result: RunResult, spec: RunSpec) -> OutOfMemory:
    rank, failure = next(
        ((e.rank, e.failure) for e in result.evidence if e.failure and e.failure.kind == "oom"),
        (0, None),
    )
    requested = failure.requested_bytes if failure else None
    base = next((e.base_rss_bytes for e in result.evidence if e.rank == rank), 0)
    limit = spec.memory_budget_bytes
    return OutOfMemory(
        at_least_bytes=_peak_bytes(result) + (requested or 0),
        limit_bytes=base + limit if limit is not None and base else limit,
        requested_bytes=requested,
        rank=rank,
    )


def _crashed(result: RunResult, spec: RunSpec) -> Crashed:
    observation = result.observation
    return Crashed(
        cause=_cause(result, spec)[:_CAUSE_CHARS],
        exit_code=observation.exit_code,
        signal=observation.signal,
        log_tail=observation.log_tail,
    )


def _cause(result: RunResult, spec: RunSpec) -> str:
    failures = [e.failure for e in result.evidence if e.failure is not None]
    told = next((f for f in failures if f.kind == "exception"), failures[0] if failures else None)
    if told is not None and told.kind != "exit":
        return _failure_sentence(told)
    observation = result.observation
    if observation.end in ("stopped", "cancelled"):
        return "The job was ended because the other side of its pair had failed."
    if observation.signal is not None:
        return f"The job was ended by signal {observation.signal}."
    if observation.exit_code:
        said = _exception_in(observation.log_tail)
        return said or f"The job left with exit code {observation.exit_code}."
    return _short_sentence(result, spec)


def _failure_sentence(failure: ProbeFailure) -> str:
    place = f" ({failure.file}:{failure.line})" if failure.file else ""
    if failure.kind == "no_optimizer_step":
        return "The job never called an optimizer."
    if failure.kind == "no_backward":
        return "The job called its optimizer without a backward pass."
    return f"{failure.message.splitlines()[0] if failure.message else failure.kind}{place}"


def _short_sentence(result: RunResult, spec: RunSpec) -> str:
    last = _last_step(result)
    needed = spec.warmup_steps + spec.window_steps
    if result.problems:
        return result.problems[0]
    if not result.evidence:
        return "The job left no evidence: the probe saw no optimizer, or was kept out."
    done = 0 if last is None else last + 1
    if done < needed:
        return f"The job ended after {done} steps, before its window of {needed}."
    if len(result.evidence) < result.evidence[0].world_size:
        return "The job ended, but not all of its ranks left whole evidence."
    return f"The job ended by itself after {done} steps, while more were asked of it."


def _exception_in(log_tail: str) -> str | None:
    found = [m[1] for line in log_tail.splitlines() if (m := _EXCEPTION_LINE.match(line))]
    own = [line for line in found if "ChildFailedError" not in line]
    return (own or found or [None])[-1]


def _first_unstable(evidence: tuple[RankEvidence, ...]) -> int | None:
    """The first step with a loss that is not finite: the probe writes None for such a value."""
    return min((s.index for e in evidence for s in e.steps if None in s.losses), default=None)


def _last_step(result: RunResult) -> int | None:
    outside = [step.index for step in result.observation.steps]
    inside = [step.index for e in result.evidence for step in e.steps]
    return max(outside or inside, default=None)


def _last_loss(evidence: tuple[RankEvidence, ...]) -> float | None:
    values = [v for e in evidence if e.steps for v in e.steps[-1].losses if v is not None]
    return statistics.fmean(values) if values else None


def _cpu_s_per_step(result: RunResult, spec: RunSpec) -> float | None:
    return None if result.window_cpu_s is None else result.window_cpu_s / spec.window_steps


def _peak_bytes(result: RunResult) -> int:
    """The largest rank's peak: seen from outside, else as the probe wrote it."""
    seen = result.observation.peak_rss_bytes
    return max(seen or [e.peak_rss_bytes for e in result.evidence], default=0)
