"""Recognising calls that compute a loss, and the argument that must be fp32."""

import libcst as cst

from infrarsi.patches.modules import Codebase, Module
from infrarsi.patches.syntax import argument, calls, dotted, method, receiver, walk

_FUNCTIONS = (
    "cross_entropy",
    "nll_loss",
    "log_softmax",
    "logsumexp",
    "binary_cross_entropy_with_logits",
    "binary_cross_entropy",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
    "gaussian_nll_loss",
    "poisson_nll_loss",
)
_METHODS = ("log_softmax", "logsumexp")


class Losses:
    """The losses of a codebase: torch's functions and methods, and modules built by any file."""

    def __init__(self, codebase: Codebase) -> None:
        """Collect the names of losses that are built, such as `self.criterion`."""
        self._built = {name for module in codebase for name in _built_losses(module)}

    def is_loss(self, module: Module, call: cst.Call) -> bool:
        """Whether the call computes a loss, or the log-probabilities one is made of."""
        full = module.names.full(call.func)
        if full.startswith("torch.") and full.rpartition(".")[2] in _FUNCTIONS:
            return True
        if isinstance(call.func, cst.Call):
            return _is_loss_class(module, call.func)
        if dotted(call.func) in self._built:
            return True
        return method(call) in _METHODS and not full.startswith("torch.")

    def calls_in(self, module: Module, node: cst.CSTNode) -> list[cst.Call]:
        """The loss calls below the node."""
        return [call for call in calls(node) if self.is_loss(module, call)]


def loss_input(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """What the loss is computed of."""
    full = module.names.full(call.func)
    if method(call) in _METHODS and not full.startswith("torch."):
        return receiver(call)
    return argument(call, 0, "input")


def _built_losses(module: Module) -> set[str]:
    found: set[str] = set()
    for node in walk(module.tree):
        if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Call):
            continue
        if _is_loss_class(module, node.value):
            found |= {name for t in node.targets if (name := dotted(t.target)) is not None}
    return found


def _is_loss_class(module: Module, call: cst.Call) -> bool:
    full = module.names.full(call.func)
    return full.startswith("torch.nn.") and full.endswith("Loss")
