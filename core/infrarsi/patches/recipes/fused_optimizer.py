"""The fused implementation of Adam, AdamW or SGD."""

from typing import Literal

import libcst as cst

from infrarsi.launch import Launch
from infrarsi.patches.building import add_keyword
from infrarsi.patches.modules import Codebase, Module, read_codebase
from infrarsi.patches.recipe import Claim, Declined, Rewritten
from infrarsi.patches.rewriting import Rewriting
from infrarsi.patches.syntax import argument, calls
from infrarsi.reading.sources import Sources

_FUSABLE = ("Adam", "AdamW", "SGD")
_EXCLUSIVE = ("fused", "foreach", "differentiable", "capturable")


class FusedOptimizer:
    """Run the optimizer's update as one fused kernel.

    `torch.optim.AdamW(model.parameters(), lr=1e-3)` becomes
    `torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)`. The update is the same formula
    in the same precision; only the loop over tensors moves into one kernel, so rounding may
    differ in the last bit.

    Declines where an implementation was chosen already (`fused`, `foreach`, `capturable`,
    `differentiable`), where `**kwargs` may hide such a choice, for other optimizers, and where
    an embedding has sparse gradients.
    """

    name: str = "fused_optimizer"
    title: str = "Fused optimizer"
    claim: Claim = Claim(log_speedup=0.02, sd=0.03)
    memory_role: Literal["hungry", "saver", "neutral"] = "neutral"
    conflicts: tuple[str, ...] = ()

    def rewrite(self, sources: Sources, launch: Launch) -> Rewritten | Declined:
        """Add `fused=True` to every optimizer that has a fused implementation."""
        codebase = read_codebase(sources, launch)
        if isinstance(codebase, Declined):
            return codebase
        if _has_sparse_gradients(codebase):
            return Declined(reason="Fused optimizers do not take the sparse gradients used here.")
        texts: dict[str, str] = {}
        for module in codebase:
            rewriting = Rewriting()
            for call in calls(module.tree):
                if not _is_fusable(module, call):
                    continue
                reason = _why_not(call)
                if reason is not None:
                    return Declined(reason=reason)
                rewriting.change(call, _fuse)
            if rewriting:
                texts[module.path] = module.text(rewriting.apply(module.tree))
        if not texts:
            return Declined(reason="No Adam, AdamW or SGD of torch.optim is built here.")
        return Rewritten(texts=texts, why="The fused kernel computes the same update formula.")


def _fuse(node: cst.CSTNode) -> cst.CSTNode:
    return add_keyword(cst.ensure_type(node, cst.Call), "fused", "True")


def _is_fusable(module: Module, call: cst.Call) -> bool:
    full = module.names.full(call.func)
    return full.startswith("torch.optim.") and full.rpartition(".")[2] in _FUSABLE


def _why_not(call: cst.Call) -> str | None:
    for keyword in _EXCLUSIVE:
        if argument(call, None, keyword) is not None:
            return f"The optimizer's implementation is chosen already ({keyword}=...)."
    if any(arg.star == "**" for arg in call.args):
        return "The optimizer's keywords are hidden in ** and may already choose a kernel."
    return None


def _has_sparse_gradients(codebase: Codebase) -> bool:
    for module in codebase:
        for call in calls(module.tree):
            sparse = argument(call, None, "sparse")
            if sparse is not None and not (
                isinstance(sparse, cst.Name) and sparse.value == "False"
            ):
                return True
    return False
