"""What the probe itself costs: time inside its hooks, without audits and waits."""

import functools

from infrarsi_probe import clocks


class Overhead:
    """Seconds spent in hooks since the last reset; nested hooks count once."""

    def __init__(self):
        self.seconds = 0.0
        self._depth = 0

    def reset(self):
        """Start counting anew, as where the recorded window begins."""
        self.seconds = 0.0

    def exclude(self, seconds):
        """Take out time that is not the probe's steady cost: audits, waits for the runner."""
        self.seconds -= seconds


def counted(hook):
    """A session method whose time is the probe's cost and whose errors never reach the job."""

    @functools.wraps(hook)
    def wrapper(self, *args):
        if not self.lifetime.active:
            return None
        began = clocks.now()
        outermost = self.overhead._depth == 0
        self.overhead._depth += 1
        try:
            return hook(self, *args)
        except Exception as error:
            self.note(f"the probe's {hook.__name__} failed: {type(error).__name__}: {error}")
            return None
        finally:
            self.overhead._depth -= 1
            if outermost:
                self.overhead.seconds += clocks.now() - began

    return wrapper
