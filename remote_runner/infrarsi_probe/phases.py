"""Where the time of a step goes: seconds by phase, and by kind of gap outside any hook.

The innermost phase that is entered gets the time. Outside of all, time is a gap: `after_forward`
between a forward and its backward (the loss, as scripts compute it), else `between`. On a GPU
each change of phase waits for the device, so that time falls where the work is.
"""

import threading

import torch

from infrarsi_probe import clocks

PHASES = ("data", "forward", "backward", "communication", "optimizer", "other")
GAP_DEFAULT = {"after_forward": "forward", "between": "other"}


class PhaseClock:
    """Told where phases begin and end, on the thread that trains."""

    def __init__(self):
        self._thread = threading.get_ident()
        self._stack = []
        self._gap = "between"
        self._last = clocks.now()
        self._seconds = {}

    def where(self):
        """(phase, None) or (None, gap): read from the sampling thread."""
        stack = self._stack
        return (stack[-1], None) if stack else (None, self._gap)

    def _charge(self):
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        at = clocks.now()
        phase, gap = self.where()
        key = phase or gap
        self._seconds[key] = self._seconds.get(key, 0.0) + at - self._last
        self._last = at

    def enter(self, phase):
        """`phase` begins, inside of whatever is going on."""
        if threading.get_ident() == self._thread:
            self._charge()
            self._stack.append(phase)

    def leave(self, gap="between"):
        """The innermost phase ends; `gap` is what follows where it was the outermost."""
        if threading.get_ident() == self._thread and self._stack:
            self._charge()
            self._stack.pop()
            self._gap = gap

    def cut(self):
        """Seconds by phase and gap since the last cut: one step's, where cut at its ends."""
        self._charge()
        seconds, self._seconds = self._seconds, {}
        return seconds
