"""Which statements go under autocast: from the first forward to the loss, backward outside."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.autocast.losses import Losses
from infrarsi.patches.micro_step import Level, MicroStep, Models
from infrarsi.patches.modules import Codebase, Module
from infrarsi.patches.recipe import Declined
from infrarsi.patches.syntax import calls, dotted, method, walk

_OUTSIDE = ("backward", "step", "zero_grad", "clip_grad_norm_", "clip_grad_value_")


@dataclass(frozen=True, kw_only=True)
class Region:
    """Consecutive statements of one block."""

    step: MicroStep
    statements: Sequence[cst.BaseStatement]

    @property
    def first(self) -> cst.BaseStatement:
        """Where autocast begins."""
        return self.statements[0]

    @property
    def last(self) -> cst.BaseStatement:
        """The last statement under it."""
        return self.statements[-1]


def find_region(step: MicroStep, models: Models, losses: Losses) -> Region | Declined:
    """From the first statement that calls the model to the last that makes the loss."""
    places = [
        (level, statement)
        for level, statement in step.slice()
        if models.calls_in(statement) or losses.calls_in(step.module, statement)
    ]
    if not any(models.calls_in(statement) for _, statement in places):
        return Declined(reason=f"No call of a model leads to the backward in {step.module.path}.")
    levels = {id(level.block): level for level, _ in places}
    if len(levels) > 1:
        return Declined(reason="Forward and loss stand in different blocks.")
    level = next(iter(levels.values()))
    statements = _span(level, [statement for _, statement in places])
    for statement in statements:
        word = _must_stay_outside(statement)
        if word is not None:
            return Declined(reason=f"A call of {word} stands between forward and loss.")
    return Region(step=step, statements=statements)


def called_functions(
    codebase: Codebase, regions: Iterable[Region]
) -> list[tuple[Module, cst.FunctionDef]]:
    """Functions of the workspace that the regions reach, by name; `forward` always."""
    names = {"forward"}
    for region in regions:
        for statement in region.statements:
            names |= _called_names(statement)
    functions = [
        (module, node)
        for module in codebase
        for node in walk(module.tree)
        if isinstance(node, cst.FunctionDef)
    ]
    reached: list[tuple[Module, cst.FunctionDef]] = []
    size = -1
    while size != len(names):
        size = len(names)
        reached = [(m, f) for m, f in functions if f.name.value in names]
        for _, function in reached:
            names |= _called_names(function.body)
    return reached


def _called_names(node: cst.CSTNode) -> set[str]:
    return {
        name.rpartition(".")[2] for call in calls(node) if (name := dotted(call.func)) is not None
    } | {m for call in calls(node) if (m := method(call)) is not None}


def _span(level: Level, places: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
    indexes = [i for i, s in enumerate(level.before) if any(s is p for p in places)]
    return level.before[min(indexes) : max(indexes) + 1]


def _must_stay_outside(statement: cst.CSTNode) -> str | None:
    for call in calls(statement):
        name = (dotted(call.func) or method(call) or "").rpartition(".")[2]
        if name in _OUTSIDE:
            return name
    return None
