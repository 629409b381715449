"""Clocks bound before the user's script runs, and the list by which replaced ones are seen."""

import time

NAMES = (
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "time",
    "time_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "sleep",
)
ORIGINALS = {name: getattr(time, name) for name in NAMES}

now = time.perf_counter
monotonic = time.monotonic
cpu = time.process_time
sleep = time.sleep


def replaced_clocks():
    """Names in module `time` that are no longer what they were when the probe started."""
    return tuple(f"time.{n} replaced" for n, f in ORIGINALS.items() if getattr(time, n) is not f)
