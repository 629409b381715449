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


def is_loss_call(module: Module, call: cst.Call) -> bool:
    """Whether the call is a loss of torch, as a function, a method or a module built here."""
    full = module.names.full(call.func)
    if full.startswith("torch.") and full.rpartition(".")[2] in _FUNCTIONS:
        return True
    if isinstance(call.func, cst.Call):
        return _is_loss_class(module, call.func)
    if dotted(call.func) in _built_losses(module):
        return True
    return method(call) in _METHODS and not full.startswith("torch.")


def loss_input(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """What the loss is computed of."""
    full = module.names.full(call.func)
    if method(call) in _METHODS and not full.startswith("torch."):
        return receiver(call)
    return argument(call, 0, "input")


def imported_losses(codebase: Codebase) -> set[str]:
    """Names of losses built in any module, for the modules that import them."""
    return {name for module in codebase for name in _built_losses(module)}


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


def loss_calls(module: Module, node: cst.CSTNode) -> list[cst.Call]:
    """The loss calls below the node."""
    return [call for call in calls(node) if is_loss_call(module, call)]
