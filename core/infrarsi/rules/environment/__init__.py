"""E5xx: the same hardware, software and seed; no state carried between runs."""

from infrarsi.rules.environment import world_size

MODULES = (world_size,)
"""The family's rules in the order in which their findings are shown."""
