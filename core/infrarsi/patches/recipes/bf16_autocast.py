"""bf16 autocast around forward and loss, with the loss itself in fp32."""

from collections.abc import Iterable
from typing import Literal

import libcst as cst

from infrarsi.launch import Launch
from infrarsi.patches.autocast.casts import (
    keep_losses_fp32,
    keep_routers_fp32,
    match_scatter_dtypes,
)
from infrarsi.patches.autocast.device import device_type
from infrarsi.patches.autocast.losses import Losses
from infrarsi.patches.autocast.region import Region, called_functions, find_region
from infrarsi.patches.building import expression
from infrarsi.patches.micro_step import Models, micro_steps
from infrarsi.patches.modules import Codebase, Module, read_codebase
from infrarsi.patches.normal_form import spread_micro_steps
from infrarsi.patches.recipe import Claim, Declined, Rewritten
from infrarsi.patches.rewriting import Rewriting, ensure_import
from infrarsi.patches.syntax import method, walk
from infrarsi.reading.sources import Sources

_MANAGED = (
    "autocast",
    "GradScaler",
    "set_default_dtype",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "Accelerator",
    "Fabric",
    "deepspeed",
)


class Bf16Autocast:
    """Compute matrix products in bfloat16, keep weights, optimizer state and loss in fp32.

    Forward and loss of each micro-step go under
    `torch.autocast(device_type=..., dtype=torch.bfloat16)`; backward, clipping and step stay
    outside. What enters the loss is cast back (`logits.float()`), routers that pick experts keep
    computing in fp32 and results written into a preallocated tensor take its dtype.
    Allowed by the equivalence policy; gradients differ from fp32 by about 2e-3.

    Declines where precision is managed already (autocast, a gradient scaler, 16-bit casts, a
    framework), and where no forward or no loss was found.
    """

    name: str = "bf16_autocast"
    title: str = "bf16 autocast with fp32 loss"
    claim: Claim = Claim(log_speedup=0.4, sd=0.4)
    memory_role: Literal["hungry", "saver", "neutral"] = "saver"
    conflicts: tuple[str, ...] = ()

    def rewrite(self, sources: Sources, launch: Launch) -> Rewritten | Declined:
        """Wrap every micro-step's forward and loss."""
        codebase = read_codebase(sources, launch)
        if isinstance(codebase, Declined):
            return codebase
        managed = _managed_precision(codebase)
        if managed is not None:
            return Declined(reason=f"Precision is managed here already ({managed}).")
        models = Models(codebase)
        codebase = tuple(
            spread_micro_steps(m, lambda node: bool(models.calls_in(node))) for m in codebase
        )
        losses = Losses(codebase)
        regions = [find_region(step, models, losses) for step in micro_steps(codebase)]
        for region in regions:
            if isinstance(region, Declined):
                return region
        if not regions:
            return Declined(reason="No backward call on a loss was found.")
        return _rewrite(codebase, losses, [r for r in regions if isinstance(r, Region)])


def _rewrite(codebase: Codebase, losses: Losses, regions: list[Region]) -> Rewritten | Declined:
    rewritings = {module.path: Rewriting() for module in codebase}
    for region in regions:
        module = region.step.module
        rewritings[module.path].wrap(region.first, region.last, _header(region))
    functions = called_functions(codebase, regions)
    regional = [(r.step.module, s) for r in regions for s in r.statements]
    code: list[tuple[Module, cst.CSTNode]] = [*functions, *regional]
    if not keep_losses_fp32(losses, code, rewritings):
        return Declined(reason="No loss function was found that could be kept in fp32.")
    keep_routers_fp32(functions, rewritings)
    match_scatter_dtypes(functions, rewritings)
    texts = {
        module.path: module.text(_with_torch(module, rewritings[module.path]))
        for module in codebase
        if rewritings[module.path]
    }
    return Rewritten(
        texts=texts,
        why="Products are rounded to bf16; parameters, optimizer state and loss stay fp32.",
    )


def _with_torch(module: Module, rewriting: Rewriting) -> cst.Module:
    tree = rewriting.apply(module.tree)
    return tree if module.names.spell("torch") else ensure_import(tree, "torch")


def _header(region: Region):
    torch = region.step.module.names.spell("torch") or "torch"
    device = device_type(region.step, torch)
    context = expression(f"{torch}.autocast(device_type={device}, dtype={torch}.bfloat16)")

    def header(body: cst.BaseSuite, leading_lines: Iterable[cst.EmptyLine]) -> cst.With:
        return cst.With(
            items=[cst.WithItem(item=context)], body=body, leading_lines=tuple(leading_lines)
        )

    return header


def _managed_precision(codebase: Codebase) -> str | None:
    for module in codebase:
        for node in walk(module.tree):
            if isinstance(node, cst.Name) and node.value in _MANAGED:
                return node.value
            if method(node) in ("half", "bfloat16"):
                return f".{method(node)}()"
            if isinstance(node, cst.Attribute):
                full = module.names.full(node)
                if full in ("torch.bfloat16", "torch.float16", "torch.half"):
                    return full
    return None
