"""T3xx: one contiguous window that holds all the work, measured by an outside clock."""

from infrarsi.rules.timing import (
    awaited,
    chosen_window,
    clock_functions,
    deferred,
    early_fetch,
    early_training,
    left_running,
    outside_turn,
    paused,
    replayed,
    statistics,
    throughput,
)

MODULES = (
    outside_turn,
    early_fetch,
    left_running,
    statistics,
    clock_functions,
    throughput,
    early_training,
    awaited,
    deferred,
    paused,
    replayed,
    chosen_window,
)
"""The family's rules in the order in which their findings are shown."""
