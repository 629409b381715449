"""What one training process does with the events its hooks report.

Turns events into steps, steps into records, and gives each plan (audit, redo, flops, profile)
its turn where a step opens and closes. Holds no hook itself.
"""

import torch

from infrarsi_probe import clocks, facts, failures, ranks
from infrarsi_probe.control import Control, RunnerGoneError
from infrarsi_probe.model_inputs import is_traced
from infrarsi_probe.overhead import Overhead, counted
from infrarsi_probe.plans import plans_for
from infrarsi_probe.recording import Recorder
from infrarsi_probe.repeats import SeenRows
from infrarsi_probe.roots import Roots
from infrarsi_probe.rows import RowHash
from infrarsi_probe.steps import StepMachine
from infrarsi_probe.ticks import ticker

BACKWARD_LIMIT = 64
BACKWARD_LIMIT_WITH_OPTIMIZER = 4096


class Session:
    """The probe in a process that has torch. `lifetime` ends it."""

    def __init__(self, lifetime):
        self.lifetime = lifetime
        self.config = lifetime.config
        self.machine = StepMachine()
        self.overhead = Overhead()
        self.roots = Roots(RowHash(self.config.hash_key))
        self.plans = plans_for(self)
        self.phases = next((p.phases for p in self.plans if hasattr(p, "phases")), None)
        self.recorder = Recorder()
        self._seen = SeenRows() if self.config.mode == "redo" else None
        self.begun = False
        self.narrow = None
        self.installed = None
        self._unsupported = []
        self._control = None
        self._ticker = None
        self._stop_after = self.config.end_step - 1

    @property
    def optimizers(self):
        """Optimizers that have stepped, in the order of their first call."""
        return self.recorder.optimizers

    def note(self, text):
        """Say in the evidence that something could not be seen or done."""
        if text not in self._unsupported and len(self._unsupported) < 50:
            self._unsupported.append(text)

    def _begin(self):
        self.begun = True
        facts.finish_in_worker(self.lifetime)
        if self.config.control_socket:
            try:
                self._control = Control(self.config.control_socket)
                self._send(type="hello", rank=ranks.rank(), world_size=ranks.world_size())
            except RunnerGoneError as error:
                self._runner_gone(error)
            self._ticker = ticker(self._send)
        self._open()

    def _runner_gone(self, error):
        message = f"the runner cannot be reached: {error}"
        self.lifetime.end_job("runner_gone", failures.failure("exit", message))

    def _send(self, **line):
        self._control.send(**line)

    @counted
    def data_begins(self):
        """The script asks a loader for its next batch."""
        self._before_work()
        self._enter("data")

    @counted
    def data_ends(self):
        """The loader has answered."""
        self._leave()

    @counted
    def forward_begins(self, module, args, kwargs):
        """An outermost forward of `module` starts."""
        if self.machine.in_backward or is_traced(args, kwargs):
            return
        self._before_work()
        if torch.is_grad_enabled():
            if not self.begun:
                self._begin()
            for plan in self.plans:
                plan.forward_begins(module)
            self.roots.call(module, args, kwargs)
            self._enter("forward")
        else:
            self._enter("other")

    @counted
    def forward_ends(self, module):
        """That forward has returned; told in profile mode only."""
        if self.machine.in_backward:
            return
        for plan in self.plans:
            plan.forward_ends(module)
        self._leave("after_forward" if torch.is_grad_enabled() else "between")

    def _enter(self, phase):
        if self.phases is not None:
            self.phases.enter(phase)

    def _leave(self, gap="between"):
        if self.phases is not None:
            self.phases.leave(gap)

    @counted
    def loss_target(self, target, ignore_index):
        """An eager cross-entropy is computed on `target`."""
        if not self.machine.in_backward and torch.is_grad_enabled():
            self.roots.loss_target(target, ignore_index)

    @counted
    def backward_begins(self, tensors):
        """Backward is called on `tensors`; True where it is the outermost."""
        if self.machine.in_backward:
            return False
        self._before_work()
        if not self.begun:
            self._begin()
        self.machine.backward_begins()
        self.recorder.losses.add(tensors)
        self._check_optimizer_is_called()
        self._enter("backward")
        return True

    @counted
    def backward_ends(self):
        """The outermost backward has returned."""
        self._leave()
        self.machine.backward_ends()

    def _check_optimizer_is_called(self):
        machine = self.machine
        if machine.n_optimizer_calls or machine.n_backward < BACKWARD_LIMIT:
            return
        if machine.n_backward % BACKWARD_LIMIT == 0:
            patient = facts.has_optimizer() and machine.n_backward < BACKWARD_LIMIT_WITH_OPTIMIZER
            if not patient:
                message = f"{machine.n_backward} backward calls and no optimizer step"
                failure = failures.failure("no_optimizer_step", message)
                self.lifetime.end_job("failed", failure)

    @counted
    def optimizer_begins(self, optimizer):
        """An optimizer's step starts."""
        outermost = self.machine.optimizer_begins()
        if outermost:
            self.recorder.optimizer_begins(optimizer)
            for plan in self.plans:
                plan.optimizer_begins(optimizer)
        self._enter("optimizer")

    @counted
    def optimizer_ends(self, optimizer):
        """An optimizer's step has returned."""
        self._leave()
        self.machine.optimizer_ends()

    @counted
    def optimizer_skipped(self, optimizer):
        """A gradient scaler left out this optimizer's step."""
        self.recorder.optimizer_skipped(optimizer)
        self.machine.optimizer_called()

    def _before_work(self):
        if self.machine.ends_before_work():
            self._close()

    def close_pending(self):
        """Close the last step of a script that has ended by itself."""
        if self.machine.pending:
            self._close()

    def _open(self):
        for plan in self.plans:
            plan.opens(self.machine.index)

    def _close(self):
        index = self.machine.index
        for plan in self.plans:
            plan.closes(index)
        keep = index >= self.config.first_recorded
        counters = self.roots.close_step()
        hashes = counters.take_row_hashes()
        if self._seen is not None:
            counters.rows_seen = self._seen.count(hashes)
        self.recorder.close(index, self.machine.close(), counters, keep)
        if index == 0 and self.narrow is not None:
            self.narrow(self.roots.chosen)
        if index + 1 == self.config.first_recorded:
            self.overhead.reset()
        self._tick(index)
        if index >= self._stop_after:
            self.lifetime.end_job("finished" if self._control is None else "stopped")
        self._open()

    def _tick(self, index):
        if self._control is None:
            return
        began = clocks.now()
        try:
            self._ticker.tick(index)
            self._obey(self._control.commands())
        except RunnerGoneError as error:
            self._runner_gone(error)
        self.overhead.exclude(max(0.0, clocks.now() - began - 50e-6))

    def _obey(self, commands):
        for command in commands:
            if command["type"] == "stop":
                self._stop_after = min(self._stop_after, command["after"])
            for plan in self.plans:
                plan.obeys(command)

    def stopped_by_peers(self):
        """Whether an error now is only that other ranks have already obeyed a stop."""
        try:
            if self._control is not None:
                self._obey(self._control.commands())
        except RunnerGoneError:
            return True
        return self.machine.index > self._stop_after

    def has_all_steps(self):
        """Whether every step the configuration asked for has been closed."""
        return self.machine.index > self._stop_after

    def say_bye(self, reason):
        """Tell the runner that the evidence is on disk."""
        if self._control is not None:
            try:
                self._ticker.finish()
                self._control.send(type="bye", reason=reason)
            except RunnerGoneError:
                pass

    def evidence(self):
        """The session's fields of the evidence file; waits for the device."""
        for plan in self.plans:
            plan.finishes()
        if self.recorder.weights_moved_alone():
            self.note("parameters changed without an optimizer call")
        if self.roots.best() is None and self.machine.n_backward:
            self.note("the root module's forward was not seen")
        fields = facts.process_facts(self)
        fields["steps"] = self.recorder.records()
        fields["overhead_s"] = max(0.0, self.overhead.seconds)
        fields["overhead_steps"] = len(self.recorder)
        fields["tampering"] = self._tampering()
        for plan in self.plans:
            fields.update(plan.evidence())
        fields["unsupported"] = list(self._unsupported)
        return fields

    def _tampering(self):
        broken = self.installed.broken() if self.installed is not None else ()
        return [*clocks.replaced_clocks(), *broken]
