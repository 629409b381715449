"""How the end of a run is told from its traces."""

from typing import Any

import pytest

from infrarsi.run import RunEnd
from infrarsi.wire.probe import ProbeFailure, RankEvidence
from infrarsi_runner.ending import Traces, signal_of, why_it_ended


def evidence(failure: ProbeFailure | None = None, rank: int = 0) -> RankEvidence:
    return RankEvidence(
        mode="timed",
        rank=rank,
        world_size=1,
        pid=1,
        torch_version="2",
        python_version="3",
        n_threads=1,
        failure=failure,
    )


def traces(**changes: Any) -> Traces:
    usual: dict[str, Any] = {
        "exit_code": 0,
        "ended_by_runner": None,
        "reached_window": True,
        "evidence": (evidence(),),
        "n_ranks": 1,
        "log_tail": "",
        "kernel_oom_kills": 0,
        "memory_used_frac": 0.0,
    }
    return Traces(**{**usual, **changes})


OOM = evidence(ProbeFailure(kind="oom", message="DefaultCPUAllocator: can't allocate memory"))
VALUE_ERROR = evidence(ProbeFailure(kind="exception", message="ValueError: MemoryError is a word"))
FAILED = evidence(ProbeFailure(kind="exception", message="ValueError: no"))


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({}, "finished"),
        ({"reached_window": False}, "exit"),
        ({"evidence": ()}, "exit"),
        ({"n_ranks": 2}, "exit"),
        ({"ended_by_runner": "timeout", "exit_code": 137}, "timeout"),
        ({"exit_code": 1, "evidence": (OOM,)}, "out_of_memory"),
        ({"exit_code": 1, "evidence": (FAILED,)}, "exit"),
        ({"exit_code": 1, "evidence": (), "log_tail": "std::bad_alloc\n"}, "out_of_memory"),
        ({"exit_code": 1, "evidence": (FAILED,), "log_tail": "MemoryError"}, "exit"),
        ({"exit_code": 139}, "signal"),
        ({"exit_code": -11}, "signal"),
        ({"exit_code": 139, "memory_used_frac": 0.95}, "out_of_memory"),
        ({"exit_code": 137}, "signal"),
        ({"exit_code": 137, "kernel_oom_kills": 1}, "out_of_memory"),
        ({"exit_code": 1, "kernel_oom_kills": 1}, "exit"),
    ],
)
def test_the_end_follows_from_the_traces(changes: dict[str, Any], end: RunEnd) -> None:
    assert why_it_ended(traces(**changes)) == end


@pytest.mark.parametrize(("code", "number"), [(0, None), (1, None), (128, None), (130, 2), (-9, 9)])
def test_signals_are_read_from_both_conventions(code: int, number: int | None) -> None:
    assert signal_of(code) == number
