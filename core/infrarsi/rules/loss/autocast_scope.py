"""L215: autocast covers forward and loss only.

With the update under autocast, its arithmetic is done in 16 bits; with backward under it,
gradients are computed in formats torch does not intend, and casts of weights are cached across
steps.

Mend it by ending the `with` block before backward.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.project import CallSite
from infrarsi.reading.values import Known, Made
from infrarsi.rules.change import Change

CODE = "L215"


def find(change: Change) -> Iterator[Violation]:
    """An error for a backward or an update that newly stands under autocast."""
    if change.sides is None:
        return
    now, was = change.sides
    for name, site in _sites(now):
        held = any(_autocast(was, other) for kind, other in _sites(was) if kind == name)
        certain = _autocast(now, site)
        if certain is not None and not held:
            yield violation(
                CODE,
                f"The {name} stands under autocast; the contract holds autocast around forward "
                "and loss only.",
                severity="error" if certain else "warning",
                place=site.scope.source.place(site.call),
            )
            return


def _sites(program: Program) -> Iterator[tuple[str, CallSite]]:
    training = program.work.training
    if training is not None:
        yield "backward pass", training.backward
        for step in training.steps:
            yield "optimizer step", step


def _autocast(program: Program, site: CallSite, hops: int = 0) -> bool | None:
    """Whether a call surely stands under autocast; None where it does not."""
    frame = program.evaluator.frame(site.scope)
    for ancestor in site.scope.source.ancestors(site.call):
        for item in ancestor.items if isinstance(ancestor, ast.With | ast.AsyncWith) else ():
            value = program.evaluator.value(item.context_expr, frame)
            if isinstance(value, Made) and value.callee.endswith("autocast"):
                return _is_on(program, value)
    if hops < 3:
        for caller in program.evaluator.call_sites(site.scope)[:1]:
            if caller.scope is not site.scope:
                return _autocast(program, caller, hops + 1)
    return None


def _is_on(program: Program, made: Made) -> bool | None:
    for keyword in made.call.keywords:
        if keyword.arg == "enabled":
            value = program.evaluator.value(keyword.value, made.frame)
            if not isinstance(value, Known):
                return False
            return True if value.value else None
    return True
