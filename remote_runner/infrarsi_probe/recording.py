"""Records of steps: gathers what belongs to the open step and keeps it until after the window."""

from infrarsi_probe import clocks, facts
from infrarsi_probe.counters import Losses, learning_rates
from infrarsi_probe.deferred import settled
from infrarsi_probe.weights import WeightSample, n_changed


class Recorder:
    """The open step's losses, optimizer calls and weight sample, and the records so far."""

    def __init__(self):
        self.optimizers = []
        self.losses = Losses()
        self._records = []
        self._sample = None
        self._before = None
        self._after = None
        self._moved_alone = []
        self._cpu = clocks.cpu()
        self._clear()

    def _clear(self):
        self.losses = Losses()
        self._called = []
        self._skipped = False
        self._found_inf = []
        self._before = None

    def __len__(self):
        return len(self._records)

    def optimizer_begins(self, optimizer):
        """An optimizer is about to change weights: sample them before the step's first call."""
        if all(optimizer is not o for o in self.optimizers):
            self.optimizers.append(optimizer)
            self._sample = WeightSample([p for o in self.optimizers for p in facts.parameters(o)])
            self._before = self._after = None
        if self._before is None:
            self._before = self._sample.take()
            self._note_moved(n_changed(self._after, self._before))
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is not None:
            self._found_inf.append(found_inf)
        self._called.append(optimizer)

    def _note_moved(self, changed):
        if changed is not None:
            value = settled(changed)
            if not isinstance(value, int) or value:
                self._moved_alone.append(value)

    def optimizer_skipped(self, optimizer):
        """A gradient scaler left out an optimizer's step."""
        self._skipped = True
        self._called.append(optimizer)

    def forget_weights(self):
        """The probe itself changed weights: do not take it for the script's doing."""
        self._after = None

    def close(self, index, micro_steps, counters, keep):
        """Close the step; `keep` says whether it is recorded."""
        self._after = self._sample.take() if self._sample is not None else None
        changed = n_changed(self._before, self._after)
        cpu = clocks.cpu()
        if keep:
            fields = {
                "index": index,
                "end_s": clocks.monotonic(),
                "cpu_s": cpu - self._cpu,
                "micro_steps": micro_steps,
                "learning_rates": learning_rates(facts.distinct(self._called)),
                "loss_dtype": self.losses.dtype,
            }
            changed = None if changed is None else settled(changed)
            late = (counters, self.losses, changed, self._skipped, tuple(self._found_inf))
            self._records.append((fields, late))
        self._cpu = cpu
        self._clear()

    def weights_moved_alone(self):
        """Whether weights changed between a step's end and the next optimizer call."""
        return any(int(n) for n in self._moved_alone)

    def records(self):
        """StepRecords as dictionaries; waits for the device."""
        return [_record(fields, late) for fields, late in self._records]


def _record(fields, late):
    counters, losses, changed, skipped, found_inf = late
    record = {**fields, **counters.fields(), "losses": losses.values()}
    record["changed_samples"] = None if changed is None else int(changed)
    record["skipped"] = bool(skipped or any(bool(f) for f in found_inf))
    return record
