"""What is counted in one step: rows, tokens, hashes, positions, losses, rates, weight changes.

Values stay tensors on their device until `record` is called after the window: counting never
waits for a device. On the CPU that makes no difference, and they are read at once.
"""

import torch

from infrarsi_probe.deferred import number, settled
from infrarsi_probe.model_inputs import ModelInputs
from infrarsi_probe.rows import RowHash, hexadecimal

IGNORE_INDEX = -100


def _autocast(device):
    """(whether autocast is on, its dtype); torch 2.3 asks by device in functions of their own."""
    if hasattr(torch, "get_autocast_dtype"):
        return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    if device == "cpu":
        return torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
    return torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()


class MicroStep:
    """Rows of one forward, as two matrices whose rows belong together."""

    def __init__(self, rows, width, raw):
        self.rows = rows
        self.width = width
        self.raw = raw
        self.has_targets = False
        self.target_parts = []


class Counters:
    """Counts of the step that is open. One per root that was called in it."""

    def __init__(self, hasher: RowHash):
        self._hash = hasher
        self.rows = 0
        self.tokens = 0
        self.seq_len = None
        self.autocast = None
        self._inputs = []
        self._targets = []
        self._positions = []
        self._micro = None
        self._row_hashes = []
        self.rows_seen = None

    def forward(self, named):
        """Count one root forward with these (name, tensor) arguments."""
        inputs = ModelInputs(named)
        self.rows += inputs.rows
        self.seq_len = inputs.seq_len
        self._micro = MicroStep(inputs.rows, inputs.seq_len or 1, None)
        if inputs.ids is not None:
            self.tokens += inputs.ids.numel()
            self._hash_inputs(inputs)
        if inputs.targets is not None:
            self._add_targets(inputs.targets, IGNORE_INDEX)
            self._micro.has_targets = True
        lead = inputs.ids if inputs.ids is not None else inputs.first
        self._see_autocast(lead.device.type if lead is not None else "cpu")

    def _see_autocast(self, device):
        on, dtype = _autocast(device)
        self.autocast = str(dtype)[6:] if on else None

    def _hash_inputs(self, inputs):
        ids = inputs.ids if inputs.ids.dim() > 1 else inputs.ids.unsqueeze(0)
        raw = self._hash.raw(ids, "ids")
        for name, tensor in inputs.others:
            raw = raw + self._hash.raw(tensor, "other " + name)
        self._micro.raw = raw
        self._row_hashes.append(raw)
        self._inputs.append(settled(self._hash.total(raw)))

    def _add_targets(self, targets, ignore_index):
        micro = self._micro
        self._positions.append(settled((targets != ignore_index).sum()))
        rows = targets.reshape(micro.rows, -1) if micro.rows else targets.reshape(1, -1)
        raw = self._hash.raw(rows, "targets")
        if micro.raw is not None:
            raw = raw + micro.raw * 3
        self._targets.append(settled(self._hash.total(raw)))

    def loss_target(self, target, ignore_index):
        """Count the target of an eager cross-entropy; parts of a chunked one are put together."""
        micro = self._micro
        if micro is None or micro.has_targets or target.is_floating_point():
            return
        micro.target_parts.append(target.detach().reshape(-1))
        whole = micro.rows * micro.width
        if sum(p.numel() for p in micro.target_parts) >= whole:
            self._join_targets(ignore_index)

    def _join_targets(self, ignore_index):
        parts = self._micro.target_parts
        joined = torch.cat(parts) if len(parts) > 1 else parts[0]
        self._micro.target_parts = []
        if joined.numel() % max(1, self._micro.rows) == 0:
            self._micro.has_targets = True
            self._add_targets(joined, ignore_index)

    def take_row_hashes(self):
        """The hash of every row, one tensor a micro-step; they are kept no longer."""
        taken, self._row_hashes = self._row_hashes, []
        return taken

    def fields(self):
        """The fields of a StepRecord counted here; waits for the device."""
        return {
            "rows": self.rows,
            "tokens": self.tokens,
            "seq_len": self.seq_len,
            "inputs_hash": hexadecimal(self._inputs) if self._inputs else None,
            "targets_hash": hexadecimal(self._targets) if self._targets else None,
            "positions_in_loss": sum(map(int, self._positions)) if self._positions else None,
            "autocast": self.autocast,
            "rows_seen": self.rows_seen,
        }


class Losses:
    """Losses of the step that is open, as they entered backward."""

    def __init__(self):
        self._values = []
        self.dtype = None

    def add(self, tensors):
        """Keep the first tensor given to backward where it is a scalar, else a gap."""
        first = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
        if not isinstance(first, torch.Tensor) or first.numel() != 1:
            self._values.append(None)
            return
        self.dtype = str(first.dtype)[6:]
        self._values.append(settled(first.detach()))

    def values(self):
        """Finite losses, None for the others; waits for the device."""
        return tuple(None if v is None else number(v) for v in self._values)


def learning_rates(optimizers):
    """The rate of every group of these optimizers, in their order; 0.0 where there is none."""
    rates = [number(g.get("lr")) for o in optimizers for g in o.param_groups]
    return tuple(0.0 if r is None else r for r in rates)
