"""L2xx: the same objective and the same optimisation path up to calibrated rounding."""

from infrarsi.rules.loss import low_precision_weights

MODULES = (low_precision_weights,)
"""The family's rules in the order in which their findings are shown."""
