"""W1xx: the same tokens, in the same grouping per update, through the same model."""

from infrarsi.rules.workload import effective_batch, sequence_length

MODULES = (effective_batch, sequence_length)
"""The family's rules in the order in which their findings are shown."""
