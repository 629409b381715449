"""Where a step ends: the run of optimizer calls between backward phases.

A step is open from its first forward to the first forward, backward or data fetch that follows
its optimizer calls; so several optimizers, wrapped ones, ones called inside backward and ones
skipped by a gradient scaler all make one step. Optimizer calls without any backward since the
last step (some scripts call one to create its state) make none. Knows no torch.
"""


class StepMachine:
    """Told of events in their order; `index` is the step that is open."""

    def __init__(self):
        self.index = 0
        self.micro_steps = 0
        self.in_backward = False
        self.n_backward = 0
        self.n_optimizer_calls = 0
        self._optimizer_depth = 0
        self._stepped = False

    @property
    def in_optimizer(self):
        """Whether an optimizer is running now, as when it calls a closure."""
        return self._optimizer_depth > 0

    def ends_before_work(self):
        """True where the forward, backward or fetch about to start belongs to the next step."""
        return self._stepped and not self.in_backward and not self.in_optimizer

    def backward_begins(self):
        """The outermost backward starts: one micro-step."""
        self.in_backward = True
        self.micro_steps += 1
        self.n_backward += 1

    def backward_ends(self):
        """The outermost backward has returned or raised."""
        self.in_backward = False

    def optimizer_begins(self):
        """An optimizer's step starts; True for the outermost of nested ones."""
        self._optimizer_depth += 1
        return self._optimizer_depth == 1

    def optimizer_ends(self):
        """An optimizer's step has returned."""
        self._optimizer_depth = max(0, self._optimizer_depth - 1)
        self.optimizer_called()

    def optimizer_called(self):
        """An optimizer was called, be it that a scaler skipped it."""
        self.n_optimizer_calls += 1
        self._stepped = self.micro_steps > 0

    def close(self):
        """Close the open step and open the next; returns the closed step's micro-steps."""
        micro_steps, self.micro_steps = self.micro_steps, 0
        self.index += 1
        self._stepped = False
        self._optimizer_depth = 0
        return micro_steps

    @property
    def pending(self):
        """Whether the open step has had its optimizer calls, so that the job's end closes it."""
        return self._stepped
