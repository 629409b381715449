"""A loss read on the host once a step instead of once a micro-step."""

from typing import Literal

import libcst as cst

from infrarsi.launch import Launch
from infrarsi.patches.building import statement, with_method
from infrarsi.patches.host_reads import (
    HostRead,
    Loop,
    accumulates,
    first_reader,
    gate_of,
    host_reads,
    is_only_a_number,
)
from infrarsi.patches.micro_step import Level, MicroStep, Models, micro_steps
from infrarsi.patches.modules import read_codebase
from infrarsi.patches.recipe import Claim, Declined, Rewritten
from infrarsi.patches.rewriting import Rewriting
from infrarsi.patches.syntax import loads, stores
from infrarsi.reading.sources import Sources


class DropMicroSync:
    """Read the loss for logging once a step, not in every micro-step.

    `total += loss.item()` inside the accumulation loop makes the host wait for the device each
    time. It becomes `total += loss.detach().double()`, and `total = float(total)` stands behind
    the loop, before the value or a clock is first read. Sums run in float64 as they did on the
    host, so the value is the same to the last bit. A list of losses is read in one go.

    Declines where the value is looked at inside the loop, and where there is no accumulation
    loop: one read a step is what remains anyway.
    """

    name: str = "drop_micro_sync"
    title: str = "Loss read once a step"
    claim: Claim = Claim(log_speedup=0.02, sd=0.03)
    memory_role: Literal["hungry", "saver", "neutral"] = "neutral"
    conflicts: tuple[str, ...] = ()

    def rewrite(self, sources: Sources, launch: Launch) -> Rewritten | Declined:
        """Move every such read behind its accumulation loop."""
        codebase = read_codebase(sources, launch)
        if isinstance(codebase, Declined):
            return codebase
        models = Models(codebase)
        rewritings = {module.path: Rewriting() for module in codebase}
        reasons: list[str] = []
        for step in micro_steps(codebase):
            reason = _rewrite(step, models, rewritings[step.module.path])
            if reason is not None:
                reasons.append(reason)
        texts = {
            module.path: module.text(rewritings[module.path].apply(module.tree))
            for module in codebase
            if rewritings[module.path]
        }
        if texts:
            return Rewritten(texts=texts, why="The same losses are summed, and read once a step.")
        return Declined(reason=reasons[0] if reasons else "No backward call on a loss was found.")


def _rewrite(step: MicroStep, models: Models, rewriting: Rewriting) -> str | None:
    """Note the changes for one micro-step, or say why there are none."""
    loops = step.loops()
    if not loops:
        return "The backward call stands in no loop."
    level, loop = loops[0]
    if not accumulates(loop):
        return "Each turn of the loop is a whole step, so the loss is read once a step already."
    reads = host_reads(step, loop, models)
    if not reads:
        return "No loss is read on the host inside the accumulation loop."
    for name in dict.fromkeys(read.name for read in reads):
        own = [read for read in reads if read.name == name]
        reason = _move(step, level, loop, own, rewriting)
        if reason is not None:
            return reason
    return None


def _move(
    step: MicroStep, level: Level, loop: Loop, reads: list[HostRead], rewriting: Rewriting
) -> str | None:
    """Keep the tensors of one name's reads and read them later; a reason where that fails."""
    name, appends = reads[0].name, reads[0].appends
    if any(read.appends != appends for read in reads):
        return f"{name} is both summed and appended to."
    if not is_only_a_number(step, name, reads):
        return f"{name} is used as more than a number."
    gate = gate_of(loop, name, reads)
    if isinstance(gate, str):
        return gate
    if appends and (gate is not None or not _is_emptied_before(level, name)):
        return f"{name} gathers losses over several steps."
    line = _reading(step, name, appends)
    if gate is not None:
        body = [s for s in gate.body.body if isinstance(s, cst.BaseStatement)]
        rewriting.insert_before(first_reader(body, name) or body[0], line)
    if gate is None or any(name in loads(s) for s in level.after):
        target = first_reader(level.after, name)
        if target is None:
            rewriting.insert_after(level.statement, line)
        else:
            rewriting.insert_before(target, line)
    for read in reads:
        kept = with_method(with_method(read.source, "detach()"), "double()")
        rewriting.replace(read.call, kept)
    return None


def _is_emptied_before(level: Level, name: str) -> bool:
    """Whether the list is bound anew just before the loop, each time it runs."""
    return any(name in stores(s) for s in level.before)


def _reading(step: MicroStep, name: str, appends: bool) -> cst.BaseStatement:
    if not appends:
        return statement(f"{name} = float({name})")
    torch = step.module.names.spell("torch") or "torch"
    return statement(f"{name} = {torch}.stack({name}).tolist()")
