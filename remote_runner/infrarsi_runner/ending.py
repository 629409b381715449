"""Why a run ended, decided from outside it, with the probe's word only to tell oom from a crash."""

import signal as signals
from dataclasses import dataclass

from infrarsi.run import RunEnd
from infrarsi.wire.probe import RankEvidence

_OOM_TEXTS = (
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "outofmemoryerror",
    "memoryerror",
    "std::bad_alloc",
    "cannot allocate memory",
    "cuda out of memory",
)
_FAULTS = (signals.SIGSEGV, signals.SIGBUS, signals.SIGABRT)
_NEAR_LIMIT_FRAC = 0.9


@dataclass(frozen=True, kw_only=True)
class Traces:
    """All that is known when a job is gone.

    `ended_by_runner` is the runner's own reason, if it had one. `reached_window` is whether
    every rank was seen to end its last step. `memory_used_frac` compares the peak above the
    base with the budget, where there is one.
    """

    exit_code: int
    ended_by_runner: RunEnd | None
    reached_window: bool
    evidence: tuple[RankEvidence, ...]
    n_ranks: int
    log_tail: str
    kernel_oom_kills: int
    memory_used_frac: float


def why_it_ended(traces: Traces) -> RunEnd:
    """The end of the run, as one word of the domain."""
    if traces.ended_by_runner is not None:
        return traces.ended_by_runner
    if any(e.failure is not None and e.failure.kind == "oom" for e in traces.evidence):
        return "out_of_memory"
    if traces.exit_code == 0:
        return "finished" if _complete(traces) else "exit"
    if _looks_out_of_memory(traces):
        return "out_of_memory"
    return "signal" if signal_of(traces.exit_code) is not None else "exit"


def signal_of(exit_code: int) -> int | None:
    """The signal behind an exit code: negative by waitpid, above 128 by shells and sandboxes."""
    if exit_code < 0:
        return -exit_code
    return exit_code - 128 if 128 < exit_code < 128 + signals.NSIG else None


def _complete(traces: Traces) -> bool:
    whole = [e for e in traces.evidence if e.failure is None]
    return traces.reached_window and len(whole) >= traces.n_ranks


def _looks_out_of_memory(traces: Traces) -> bool:
    number = signal_of(traces.exit_code)
    if number == signals.SIGKILL and traces.kernel_oom_kills > 0:
        return True
    if number in _FAULTS and traces.memory_used_frac >= _NEAR_LIMIT_FRAC:
        return True
    said = [e.failure.message for e in traces.evidence if e.failure is not None]
    if not said:
        said = traces.log_tail.splitlines()[-40:]
    return any(text in line.lower() for line in said for text in _OOM_TEXTS)
