"""W1xx: the same tokens, in the same grouping per update, through the same model."""

from infrarsi.rules.workload import (
    attention_span,
    cadence,
    effective_batch,
    evaluation,
    gradient_sync,
    horizon,
    model_size,
    other_process,
    other_rows,
    padding,
    ramp,
    ranks,
    repeated_rows,
    sequence_length,
    skipped_compute,
    synthetic_rows,
    tokens,
    warm_start,
)

MODULES = (
    effective_batch,
    sequence_length,
    cadence,
    model_size,
    skipped_compute,
    repeated_rows,
    warm_start,
    other_rows,
    horizon,
    tokens,
    padding,
    evaluation,
    ramp,
    ranks,
    gradient_sync,
    synthetic_rows,
    attention_span,
    other_process,
)
"""The family's rules in the order in which their findings are shown."""
