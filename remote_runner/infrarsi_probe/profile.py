"""The profile of a step: seconds by phase that sum to the step, and the lines that cost most."""

import statistics

import torch

from infrarsi_probe.communication import Ablation, data_parallel_of, time_collectives
from infrarsi_probe.phases import GAP_DEFAULT, PHASES, PhaseClock
from infrarsi_probe.plans import Plan
from infrarsi_probe.sampler import Sampler

N_LINES = 20


class ProfilePlan(Plan):
    """Profiles the recorded steps. `phases` is told of phases by the session."""

    def __init__(self, session):
        self._session = session
        self.phases = PhaseClock()
        self._sampler = Sampler(self.phases, session.config.spans, session.lifetime.source_root)
        self._ablation = Ablation()
        self._ablates = None
        self._steps = []
        self._ablated = []
        time_collectives(self.phases)
        time_optimizer_helpers(self.phases)

    def _is_profiled(self, index):
        return index >= self._session.config.warmup_steps

    def _is_ablated(self, index):
        return (index - self._session.config.warmup_steps) % 2 == 1 and bool(self._ablates)

    def opens(self, index):
        """Forget what came before; sample whole steps only."""
        if index == self._session.config.warmup_steps:
            self._ablates = self._can_ablate()
            self._sampler.start()
        self._sampler.recording = self._is_profiled(index) and not self._is_ablated(index)
        if index == 0:
            self.phases.cut()

    def _can_ablate(self):
        root = self._session.roots.best()
        module = None if root is None else data_parallel_of(root)
        if module is None or torch.distributed.get_world_size() == 1:
            return False
        if getattr(module, "static_graph", False):
            self._session.note("exposed communication of a static graph cannot be measured")
            return False
        return True

    def forward_begins(self, module):
        """Take the reduction out of every second step."""
        if self._is_profiled(self._session.machine.index) and self._is_ablated(
            self._session.machine.index
        ):
            self._ablation.begins(module)

    def forward_ends(self, module):
        """The root's forward has returned."""
        self._ablation.ends()

    def closes(self, index):
        """Keep the step's seconds."""
        seconds = self.phases.cut()
        if self._is_profiled(index):
            (self._ablated if self._is_ablated(index) else self._steps).append(seconds)

    def finishes(self):
        """Stop sampling."""
        self._sampler.stop()

    def evidence(self):
        """The Profile, where at least one step was whole."""
        if not self._steps:
            return {}
        return {"profile": self._profile()}

    def _profile(self):
        step_time = statistics.median(sum(s.values()) for s in self._steps)
        seconds = {phase: _median(self._steps, phase) for phase in PHASES}
        for gap, default in GAP_DEFAULT.items():
            for phase, share in self._shares(gap, default).items():
                seconds[phase] += share * _median(self._steps, gap)
        if self._ablated:
            without = _median(self._ablated, "backward")
            exposed = max(0.0, _median(self._steps, "backward") - without)
            seconds["backward"] -= exposed
            seconds["communication"] += exposed
        scale = step_time / (sum(seconds.values()) or 1.0)
        fields = {f"{phase}_s": value * scale for phase, value in seconds.items()}
        fields.update(step_time_s=step_time, n_steps=len(self._steps))
        fields.update(n_samples=self._sampler.n_samples, lines=self._lines())
        return fields

    def _shares(self, gap, default):
        weights = self._sampler.gaps.get(gap, {})
        total = sum(weights.values())
        if not total:
            return {default: 1.0}
        shares = {}
        for phase, weight in weights.items():
            phase = phase or default
            shares[phase] = shares.get(phase, 0.0) + weight / total
        return shares

    def _lines(self):
        costs = {}
        for (file, line, phase, gap, named), seconds in self._sampler.lines.items():
            key = (file, line, phase or named or GAP_DEFAULT[gap])
            costs[key] = costs.get(key, 0.0) + seconds
        top = sorted(costs.items(), key=lambda item: -item[1])[:N_LINES]
        return [
            {"file": f, "line": n, "phase": p, "seconds_per_step": s / len(self._steps)}
            for (f, n, p), s in top
        ]


def _median(steps, key):
    return statistics.median(s.get(key, 0.0) for s in steps)


def time_optimizer_helpers(phases):
    """Charge clipping and zeroing of gradients to the optimizer, from now on."""
    from torch.nn.utils import clip_grad

    def timed(real):
        def call(*args, **kwargs):
            phases.enter("optimizer")
            try:
                return real(*args, **kwargs)
            finally:
                phases.leave()

        return call

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        wrapper = timed(getattr(clip_grad, name))
        setattr(clip_grad, name, wrapper)
        setattr(torch.nn.utils, name, wrapper)
    for owner in (torch.optim.Optimizer, torch.nn.Module):
        owner.zero_grad = timed(owner.zero_grad)
