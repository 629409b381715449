"""The reference arm: the baseline's own forward under the autocast the policy allows.

How far it strays from the baseline in full precision is the measure of what honest rounding does
to this very step; a candidate in that precision may stray a few times as far. What the forward
returns is cast back to float32, so that a loss computed behind it stays in full precision.
"""

import torch

from infrarsi_probe.plans import Plan


class ReferencePlan(Plan):
    """Puts the root's forward under autocast in the steps to redo."""

    def __init__(self, session):
        self._session = session
        self._dtype = getattr(torch, session.config.autocast)
        self._steps = set(session.config.redo_steps)
        self._module = None

    def opens(self, index):
        """Wrap the root's forward for this step."""
        if index not in self._steps:
            return
        self._module = self._session.roots.best()
        if self._module is None:
            self._session.note("no root module is known for the reference arm")
            return
        self._module.forward = self._under_autocast(self._module.forward)

    def closes(self, index):
        """Give the root its own forward back."""
        if self._module is not None:
            del self._module.forward
            self._module = None

    def _under_autocast(self, forward):
        device = next(self._module.parameters()).device.type
        dtype = self._dtype

        def wrapped(*args, **kwargs):
            with torch.autocast(device, dtype=dtype):
                out = forward(*args, **kwargs)
            return _in_full_precision(out)

        return wrapped


def _in_full_precision(value):
    if isinstance(value, torch.Tensor):
        return value.float() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_in_full_precision(v) for v in value)
    if isinstance(value, dict):
        return {k: _in_full_precision(v) for k, v in value.items()}
    return value
