"""W113: batch and length are the same in every step.

A schedule that starts with short rows or small batches and grows makes the first steps cheap; the
numbers look right at the end. What is looked for is a size that newly depends on the step.

Mend it by using the full size from the first step on.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.regions import fetch_scopes
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import settings
from infrarsi.rules.workload.counters import depends_on_step
from infrarsi.rules.workload.cuts import new_cuts

CODE = "W113"
_SIZES = ("micro_batch", "accumulation", "global_batch", "seq_len")
_WORDS = {"ramp", "rampup", "curriculum", "growth", "progressive"}


def find(change: Change) -> Iterator[Violation]:
    """An error where rows are cut by the step's number, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    told = False
    for cut in new_cuts(now, was):
        if depends_on_step(now, cut.piece.node):
            told = True
            yield _found(cut.piece, cut.piece.text, certain=True)
    for piece in fresh(_sizes(now), _sizes(was)) if not told else ():
        yield _found(piece, piece.text, certain=False)
    yield from _new_names(now, was)


def _found(piece: Fragment, text: str, certain: bool) -> Violation:
    return violation(
        CODE,
        f"A size of the step now depends on its number: `{text[:80]}`; the contract holds batch "
        "and length the same in every step.",
        severity="error" if certain else "warning",
        place=piece.place,
    )


@remembered
def _sizes(program: Program) -> list[Fragment]:
    """What sets a batch or a length, or counts micro-steps, and depends on the step's number."""
    training = program.work.training
    if training is None or training.update is None:
        return []
    scope = training.update.scope
    found = [
        Fragment(program, scope, event.value)
        for name, events in scope.events.items()
        if any(rank_alias(canonical, name) is not None for canonical in _SIZES)
        for event in events
        if event.value is not None and event.in_loop and depends_on_step(program, event.value)
    ]
    found += [
        Fragment(program, loop.scope, loop.node.iter)
        for loop in training.inner
        if isinstance(loop.node, ast.For) and depends_on_step(program, loop.node.iter)
    ]
    found += [
        Fragment(program, inner, event.value)
        for inner in fetch_scopes(program)
        for name, events in inner.events.items()
        if any(rank_alias(canonical, name) is not None for canonical in _SIZES)
        for event in events
        if event.value is not None and depends_on_step(program, event.value)
    ]
    for fetch in program.work.flow.fetches:
        for call in (n for n in walk(fetch.value) if isinstance(n, ast.Call)):
            found += [
                Fragment(program, fetch.scope, argument)
                for argument in (*call.args, *(k.value for k in call.keywords))
                if depends_on_step(program, argument)
            ]
    return found


def _new_names(now: Program, was: Program) -> Iterator[Violation]:
    before = {setting.name for several in settings(was).values() for setting in several}
    for several in settings(now).values():
        for setting in several:
            if setting.words & _WORDS and setting.name not in before:
                yield violation(
                    CODE,
                    f"`{setting.path}` is new and reads like a schedule of sizes; the contract "
                    "holds batch and length the same in every step.",
                    severity="warning",
                    place=setting.place,
                )
