"""T3xx: one contiguous window that holds all the work, measured by an outside clock."""

MODULES = ()
"""The family's rules in the order in which their findings are shown."""
