"""Which module is the root: the one called outermost, with gradients, that owns most parameters.

During the first step every outermost call is counted under its own module; when that step ends
the root is chosen and only it is listened to from then on.
"""

from infrarsi_probe.counters import Counters
from infrarsi_probe.model_inputs import argument_names, named_tensors
from infrarsi_probe.weights import parameter_names


class Roots:
    """Modules called outermost, their counters for the open step, and the chosen root."""

    def __init__(self, hasher):
        self._hasher = hasher
        self._modules = {}
        self._names = {}
        self._counters = {}
        self._last = None
        self._parameters = {}
        self.chosen = None

    def call(self, module, args, kwargs):
        """Count one outermost call with gradients."""
        key = id(module)
        if key not in self._modules:
            self._modules[key] = module
            self._names[key] = argument_names(module)
            self._parameters[key] = (list(module.parameters()), parameter_names(module))
        if key not in self._counters:
            self._counters[key] = Counters(self._hasher)
        self._last = self._counters[key]
        self._last.forward(named_tensors(self._names[key], args, kwargs))

    def loss_target(self, target, ignore_index):
        """Count a cross-entropy's target under the module called last."""
        if self._last is not None:
            self._last.loss_target(target, ignore_index)

    def best(self):
        """The chosen root, or the likeliest so far; None where no module was called."""
        if self.chosen is not None or not self._modules:
            return self.chosen
        return max(self._modules.values(), key=_n_parameters)

    def close_step(self):
        """The root's counters of the step that ends. The next step counts anew."""
        if self.chosen is None:
            self.chosen = self.best()
        counters = self._counters.get(id(self.chosen)) or Counters(self._hasher)
        self._counters = {}
        self._last = None
        return counters

    def seq_len(self):
        """Row length of the root's last call in the open step, or None."""
        counters = self._counters.get(id(self.best()))
        return None if counters is None else counters.seq_len

    def names(self):
        """{id of parameter: name} under the likeliest root; empty where there is none.

        Those it had when it was first called stay known: FSDP swaps parameters while it computes.
        """
        root = self.best()
        return {} if root is None else {**parameter_names(root), **self._parameters[id(root)][1]}


def _n_parameters(module):
    return sum(p.numel() for p in module.parameters())
