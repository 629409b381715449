"""Which of a root forward's arguments are ids, targets and masks. Looks at names, then order."""

import inspect

import torch

TARGET_NAMES = {"labels", "label", "targets", "target", "y", "tgt", "gold"}


def is_traced(args, kwargs):
    """Whether a call is only being traced: older compilers run hooks on fake tensors."""
    return any(type(a).__name__ == "FakeTensor" for a in (*args, *kwargs.values()))


def argument_names(module):
    """Positional argument names of a module's forward; empty where it cannot be told."""
    module = getattr(module, "_orig_mod", module)
    module = getattr(module, "module", module)
    try:
        parameters = inspect.signature(getattr(module, "_orig_mod", module).forward).parameters
    except (TypeError, ValueError, AttributeError):
        return ()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(n for n, p in parameters.items() if p.kind in positional)


def named_tensors(names, args, kwargs):
    """(name, tensor) of every tensor argument, one level into dictionaries and sequences."""
    named = [(names[i] if i < len(names) else "", a) for i, a in enumerate(args)]
    named.extend(kwargs.items())
    found = []
    for name, value in named:
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif isinstance(value, dict):
            found.extend((str(k), v) for k, v in value.items() if isinstance(v, torch.Tensor))
        elif isinstance(value, (list, tuple)):
            found.extend((name, v) for v in value if isinstance(v, torch.Tensor))
    return found


def _is_integer(tensor):
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.dim() > 0


class ModelInputs:
    """The integer tensors of one call.

    `ids` is the first; `targets` by name, else the second of the ids' shape; `others` (masks,
    positions) are (name, tensor) of as many rows.
    """

    def __init__(self, named):
        integers = [(n, t) for n, t in named if _is_integer(t)]
        by_name = [t for n, t in integers if n.lower() in TARGET_NAMES]
        rest = [(n, t) for n, t in integers if n.lower() not in TARGET_NAMES]
        self.ids = rest[0][1] if rest else None
        self.targets = by_name[0] if by_name else self._second(rest)
        self.others = [
            (n, t)
            for n, t in rest[1:]
            if t is not self.targets and t.dim() > 1 and t.shape[0] == self.ids.shape[0]
        ]
        self.first = named[0][1] if named else None

    def _second(self, rest):
        for name, tensor in rest[1:]:
            hidden = "mask" in name or "pos" in name
            if not hidden and tensor.shape == self.ids.shape and tensor.dtype != torch.bool:
                return tensor
        return None

    @property
    def rows(self):
        """Number of rows: the ids' first dimension, or the first tensor's."""
        lead = self.ids if self.ids is not None else self.first
        if lead is None or lead.dim() == 0:
            return 0
        return 1 if self.ids is not None and lead.dim() == 1 else int(lead.shape[0])

    @property
    def seq_len(self):
        """Length of a row of ids, or None."""
        return None if self.ids is None else int(self.ids.shape[-1])
