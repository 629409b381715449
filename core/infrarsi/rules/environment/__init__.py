"""E5xx: the same hardware, software and seed; no state carried between runs."""

from infrarsi.rules.environment import (
    debug_modes,
    device_cache,
    kept_state,
    memory_budget,
    network,
    seed,
    software,
    unbounded_tuning,
    variables,
    world_size,
)

MODULES = (
    world_size,
    software,
    seed,
    kept_state,
    variables,
    network,
    device_cache,
    unbounded_tuning,
    debug_modes,
    memory_budget,
)
"""The family's rules in the order in which their findings are shown."""
