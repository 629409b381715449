"""The audit of a step: raw weights, gradients and optimizer state, before and after.

`before`, `grad` and the state are written when an optimizer is about to change them (clipped,
unscaled: as it sees them), `after` when the step has closed, before anything of the next step.
Every tensor goes to disk at once, so that an audit needs no memory of the job's budget.
"""

import contextlib
from pathlib import Path

from infrarsi_probe import clocks, failures, ranks, raw
from infrarsi_probe.plans import Plan


@contextlib.contextmanager
def excluded(overhead):
    """Time in this block is not the probe's steady cost."""
    began = clocks.now()
    try:
        yield
    finally:
        overhead.exclude(clocks.now() - began)


def file_name(step, rank):
    """Name of the raw file of a step on a rank."""
    return f"step{step}.rank{rank}.bin"


def tensor_name(names, optimizers, parameter):
    """A parameter's name under the root, else its place in the optimizers."""
    found = names.get(id(parameter))
    if found is not None:
        return found
    for o, optimizer in enumerate(optimizers):
        for g, group in enumerate(optimizer.param_groups):
            for i, candidate in enumerate(group["params"]):
                if candidate is parameter:
                    return f"optimizer{o}.{g}.{i}"
    return "unknown"


class _Dump:
    """The raw file of one step while it grows, and its index."""

    def __init__(self, folder, step):
        self.step = step
        folder.mkdir(parents=True, exist_ok=True)
        self.name = file_name(step, ranks.rank())
        self._file = (folder / self.name).open("wb")
        self._offset = 0
        self.tensors = []
        self.scalars = {}
        self.parameters = {}

    def add(self, role, name, tensor):
        """Append one tensor."""
        plain = raw.whole(tensor)
        size = raw.write_tensor(self._file, plain)
        entry = {"role": role, "name": name, "shape": tuple(plain.shape)}
        entry.update(dtype=str(plain.dtype)[6:], offset=self._offset, n_bytes=size)
        self.tensors.append(entry)
        self._offset += size

    def add_state(self, name, state):
        """Append a parameter's optimizer state: tensors to the file, numbers to `scalars`."""
        for key, value in state.items():
            role = f"state.{key}"
            if hasattr(value, "element_size"):
                self.add(role, name, value)
            elif isinstance(value, (bool, int, float)):
                self.scalars[f"{role}.{name}"] = float(value)

    def close(self):
        """Close the file; the Audit as a dictionary."""
        self._file.close()
        return {
            "step": self.step,
            "file": self.name,
            "tensors": self.tensors,
            "scalars": self.scalars,
        }


class AuditPlan(Plan):
    """Dumps the steps that the configuration or the runner names."""

    def __init__(self, session):
        self._session = session
        config = session.config
        self._steps = set(config.redo_steps if config.mode == "redo" else config.audit_steps)
        self._folder = Path(config.evidence_dir)
        self._dump = None
        self._audits = []

    def obeys(self, command):
        """Remember a step to dump; one that has begun already cannot be."""
        if command["type"] != "audit":
            return
        if command["step"] < self._session.machine.index:
            self._session.note(f"the audit of step {command['step']} was asked for too late")
        self._steps.add(command["step"])

    def optimizer_begins(self, optimizer):
        """Dump what this optimizer is about to change, once a step."""
        index = self._session.machine.index
        if index not in self._steps:
            return
        with excluded(self._session.overhead):
            if self._dump is None:
                self._dump = _Dump(self._folder, index)
            self._check_size(optimizer)
            self._dump_before(optimizer)

    def _parameters(self, optimizer):
        known = self._dump.parameters
        every = (p for group in optimizer.param_groups for p in group["params"])
        return [p for p in every if id(p) not in known]

    def _check_size(self, optimizer):
        size = sum(e["n_bytes"] for e in self._dump.tensors)
        for p in self._parameters(optimizer):
            state = optimizer.state.get(p, {}).values()
            size += raw.n_bytes(p) * (2 if p.grad is None else 3)
            size += sum(raw.n_bytes(v) for v in state if hasattr(v, "element_size"))
        limit = self._session.config.audit_limit_bytes
        if size > limit:
            message = f"an audit of {size} bytes, more than the {limit} allowed"
            failure = failures.failure("audit_too_large", message)
            self._session.lifetime.end_job("failed", failure)

    def _dump_before(self, optimizer):
        session, dump = self._session, self._dump
        names = session.roots.names()
        for p in self._parameters(optimizer):
            name = tensor_name(names, session.optimizers, p)
            dump.parameters[id(p)] = (name, p)
            dump.add("before", name, p)
            if p.grad is not None:
                dump.add("grad", name, p.grad)
            dump.add_state(name, optimizer.state.get(p, {}))

    def closes(self, index):
        """Dump the weights as the step leaves them."""
        if self._dump is None:
            return
        with excluded(self._session.overhead):
            for name, parameter in self._dump.parameters.values():
                self._dump.add("after", name, parameter)
            self._audits.append(self._dump.close())
            self._dump = None

    def evidence(self):
        """The audits that are whole."""
        return {"audits": self._audits}
