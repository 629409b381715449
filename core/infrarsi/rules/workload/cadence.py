"""W103: one update a step.

Skipping the optimizer's step now and then, clearing gradients that were never applied, or making
updates outside the loop changes how the weights are trained. Conditions that newly stand around
backward, step or zero_grad are looked for, and steps that were added or taken away. Accumulating
over micro-steps is no such change as long as the rows per update stay.

Mend it by taking the condition away.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh, new_conditions, pieces
from infrarsi.rules.regions import step_regions
from infrarsi.rules.remembered import remembered

CODE = "W103"
_WORDS = {
    "step": "The optimizer steps",
    "backward": "Backward runs",
    "zero_grad": "Gradients clear",
}
_HARMLESS = ("sync", "accum", "last", "boundary", "isfinite", "isnan", "isinf", "is_main", "micro")
_DECIDED = ("norm", "loss", "rand", "random", "skip")


def find(change: Change) -> Iterator[Violation]:
    """An error where the update depends on a norm, a loss or luck; a warning otherwise."""
    if change.sides is None:
        return
    now, was = change.sides
    if was.work.training is None or was.work.training.update is None:
        return
    if now.work.training is None or now.work.training.update is None:
        yield _gone(was)
        return
    kept = _keeps_rows(change)
    for name in ("step", "backward", "zero_grad"):
        for call, test in new_conditions(_calls(now, name), _calls(was, name)):
            if kept and "%" in test.text:
                continue
            yield _conditional(_WORDS[name], call, test)
    yield from _skips(now, was)
    yield from _counts(now, was)


def _keeps_rows(change: Change) -> bool:
    """Whether rows per update are known to be the baseline's."""
    held = change.was.reading.fact("global_batch") if change.was is not None else None
    now = change.count(change.fact("global_batch"))
    return now is not None and held is not None and now == held.value


def _calls(program: Program, name: str) -> list[Call]:
    training = program.work.training
    assert training is not None
    if name == "step":
        sites = {site.call for site in training.steps}
        return [
            call
            for call in program.called(["step"])
            if call.site.call in sites and not call.is_dead
        ]
    return [c for c in program.called([name]) if c.in_step and not c.is_dead]


def _conditional(what: str, call: Call, test: Fragment) -> Violation:
    text = test.text.lower()
    certain = any(word in text for word in _DECIDED) and not any(w in text for w in _HARMLESS)
    severity: Severity = "error" if certain else "warning"
    return violation(
        CODE,
        f"{what} only under `{test.text[:70]}`; the contract holds one update in every step.",
        severity=severity,
        place=call.place,
    )


def _skips(now: Program, was: Program) -> Iterator[Violation]:
    """New `continue` in the training loop."""
    for piece in fresh(_continues(now), _continues(was)):
        yield violation(
            CODE,
            f"The rest of a step is skipped under `{piece.text[:70]}`; the contract holds one "
            "update in every step, on all its rows.",
            severity="warning",
            place=piece.place,
        )


@remembered
def _continues(program: Program) -> list[Fragment]:
    found: list[Fragment] = []
    for piece in pieces(program, step_regions(program), lambda _: True, ast.Continue):
        test = next(
            (a.test for a in piece.scope.source.ancestors(piece.node) if isinstance(a, ast.If)),
            piece.node,
        )
        found.append(Fragment(program, piece.scope, test))
    return found


def _counts(now: Program, was: Program) -> Iterator[Violation]:
    """Steps that were added within the loop or outside it, and clearing that is gone."""
    inside, before = _calls(now, "step"), _calls(was, "step")
    if len(inside) > len(before) and len({c.receiver for c in inside}) == len(
        {c.receiver for c in before}
    ):
        yield _warned("The optimizer steps in more places of the loop than before", inside[-1])
    outside = _outside(now)
    if len(outside) > len(_outside(was)):
        yield _warned("Updates are now made outside the training loop", outside[0])
    if _clears(was) and not _clears(now):
        yield _warned("Gradients are cleared no more before the next step", inside[0])


def _outside(program: Program) -> list[Call]:
    training = program.work.training
    assert training is not None
    sites = {site.call for site in training.steps}
    stepping = [
        scope
        for scope, block in training.blocks[1:]
        if any(site.scope is scope and block is scope.node for site in training.steps)
    ]
    entered = {site.call for scope in stepping for site in program.evaluator.call_sites(scope)}
    from_outside = [
        call
        for call in program.called(scope.name for scope in stepping)
        if call.site.call in entered and not call.in_step and not call.is_dead
    ]
    return from_outside + [
        call
        for call in program.called(["step"])
        if call.site.call not in sites
        and not call.is_dead
        and not call.in_step
        and ("opt" in call.receiver.lower() or "optim" in call.callee)
    ]


def _clears(program: Program) -> bool:
    if program.called(("zero_grad", "zero_gradients")):
        return True
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Store)
        for source in program.project.files.values()
        for node in source.nodes
    )


def _warned(what: str, call: Call) -> Violation:
    return violation(
        CODE,
        f"{what}; the contract holds one update in every step.",
        severity="warning",
        place=call.place,
    )


def _gone(was: Program) -> Violation:
    step = was.work.training.steps[0] if was.work.training is not None else None
    return violation(
        CODE,
        "No optimizer step is found around the backward call any more; the contract holds one "
        "update in every step.",
        severity="warning",
        contract_place=step.scope.source.place(step.call) if step is not None else None,
    )
