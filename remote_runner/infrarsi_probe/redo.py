"""Redo: the baseline takes a candidate's steps with the candidate's weights and state swapped in.

Nothing else is substituted: rows, loss, schedule and clipping are the baseline's own, so any
difference in them shows as another gradient or another update. State takes the baseline's kind:
where it keeps `step` on the device (fused) or on the CPU, so does what is swapped in.
"""

import json
from pathlib import Path

import torch

from infrarsi_probe import failures, ranks, raw
from infrarsi_probe.audit import excluded, tensor_name
from infrarsi_probe.plans import Plan
from infrarsi_probe.weights import local, parameter_names


class _CandidateStep:
    """One audited step of the candidate on this rank."""

    def __init__(self, folder, step):
        folder = Path(folder)
        content = json.loads((folder / f"rank{ranks.rank()}.json").read_text("utf-8"))
        audits = [a for a in content.get("audits", ()) if a["step"] == step]
        if not audits:
            raise ValueError(f"the candidate left no audit of step {step}")
        self._path = folder / Path(audits[0]["file"]).name
        self.before = {t["name"]: t for t in audits[0]["tensors"] if t["role"] == "before"}
        self.state = {}
        for entry in audits[0]["tensors"]:
            if entry["role"].startswith("state."):
                self.state.setdefault(entry["name"], {})[entry["role"][6:]] = entry
        self._numbers = audits[0].get("scalars", {})

    def numbers(self, name):
        """Optimizer state of a parameter that is no tensor."""
        tail = "." + name
        return {
            key[6 : -len(tail)]: value
            for key, value in self._numbers.items()
            if key.startswith("state.") and key.endswith(tail) and "." not in key[6 : -len(tail)]
        }

    def read(self, entry):
        """The tensor of an entry."""
        with self._path.open("rb") as file:
            return raw.read_tensor(file, entry)


def _part_for(value, like):
    """A whole value laid out as `like` is; without communication."""
    if not hasattr(like, "to_local"):
        return value.to(device=like.device)
    try:
        from torch.distributed.tensor import DTensor, Replicate
    except ImportError:
        from torch.distributed._tensor import DTensor, Replicate

    mesh = like.device_mesh
    value = value.to(device=like.to_local().device)
    replicated = DTensor.from_local(value, mesh, [Replicate()] * mesh.ndim, run_check=False)
    return replicated.redistribute(placements=like.placements)


def _copy_into(target, value):
    if tuple(target.shape) != tuple(value.shape):
        raise ValueError(f"shape {tuple(value.shape)} for {tuple(target.shape)}")
    local(target).copy_(local(_part_for(value, target)))


class RedoPlan(Plan):
    """Swaps the candidate's state in before each of the steps to redo."""

    def __init__(self, session):
        self._session = session
        self._steps = set(session.config.redo_steps)
        self._weights = None

    def opens(self, index):
        """Swap in weights and optimizer state; at step 0 weights wait for the root."""
        self._check_all_found()
        if index not in self._steps:
            return
        with excluded(self._session.overhead), torch.no_grad():
            try:
                self._swap_in(_CandidateStep(self._session.config.redo_dir, index))
            except (OSError, ValueError, KeyError, RuntimeError) as error:
                message = f"step {index} cannot be redone: {error}"
                failure = failures.failure("exception", message)
                self._session.lifetime.end_job("failed", failure)

    def _swap_in(self, step):
        self._weights = (step, set(step.before))
        self._put_weights(self._session.roots.names(), self._parameters())
        for optimizer in self._session.optimizers:
            self._put_state(optimizer, step)
        self._session.recorder.forget_weights()

    def forward_begins(self, module):
        """At step 0 the parameters become known by the modules that are called."""
        if self._weights and self._weights[1]:
            with excluded(self._session.overhead), torch.no_grad():
                self._put_weights(parameter_names(module), list(module.parameters()))

    def closes(self, index):
        """A redone step has closed."""
        self._check_all_found()

    def _check_all_found(self):
        if self._weights and self._weights[1]:
            missing = sorted(self._weights[1])
            self._session.note(f"cannot redo: the baseline has no parameter {missing[0]}")
        self._weights = None

    def _parameters(self):
        root = self._session.roots.best()
        found = {} if root is None else {id(p): p for p in root.parameters()}
        for optimizer in self._session.optimizers:
            for group in optimizer.param_groups:
                found.update((id(p), p) for p in group["params"])
        return list(found.values())

    def _put_weights(self, names, parameters):
        step, missing = self._weights
        for p in parameters:
            name = tensor_name(names, self._session.optimizers, p)
            if name in step.before:
                _copy_into(p, self._rounded(step.read(step.before[name])))
                missing.discard(name)

    def _rounded(self, value):
        """The value in the precision of a rounding reference arm, else as it is."""
        if self._session.config.rounds_weights and value.is_floating_point():
            return value.to(torch.bfloat16).to(value.dtype)
        return value

    def _put_state(self, optimizer, step):
        names = self._session.roots.names()
        for group in optimizer.param_groups:
            on_device = bool(group.get("fused") or group.get("capturable"))
            for p in group["params"]:
                name = tensor_name(names, self._session.optimizers, p)
                self._put_one(optimizer, p, on_device, step, name)

    def _put_one(self, optimizer, p, on_device, step, name):
        tensors = {k: step.read(e) for k, e in step.state.get(name, {}).items()}
        numbers = step.numbers(name)
        if not tensors and not numbers:
            optimizer.state.pop(p, None)
            return
        state = optimizer.state[p]
        for key, value in {**tensors, **numbers}.items():
            state[key] = _adapted(state.get(key), value, p, on_device)


def _adapted(existing, value, parameter, on_device):
    """`value` in the kind the baseline keeps: updated in place where it already has it."""
    if isinstance(existing, torch.Tensor):
        if not isinstance(value, torch.Tensor):
            return existing.fill_(value)
        _copy_into(existing, value)
        return existing
    if isinstance(existing, (bool, int, float)):
        return type(existing)(value.item() if isinstance(value, torch.Tensor) else value)
    if not isinstance(value, torch.Tensor):
        return value
    if tuple(value.shape) == tuple(parameter.shape) and value.dim() > 0:
        return _part_for(value, parameter)
    return value.to(local(parameter).device) if on_device else value
