"""L211: each update has the learning rate the baseline's schedule gives it.

A shorter warm-up, another decay, a scheduler that is stepped more or less often change the
training and the loss that is compared. Setting the same rate in another way is fine.

Mend it by restoring the number, or the place where the scheduler is stepped: once an update.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.loss.schedules import Formula, assigned_rates, scheduler_steps, schedulers
from infrarsi.rules.loss.sides import (
    has_update,
    loop_place,
    moved_fact,
    restoring,
    same_number,
    severity,
)

CODE = "L211"


def find(change: Change) -> Iterator[Violation]:
    """An error for another number in the same formula, a warning for another formula."""
    moved = moved_fact(change, "lr")
    if moved is not None:
        now, agreed = moved
        yield violation(
            CODE,
            f"The learning rate is {now.value} instead of {agreed.value}; "
            f"the contract holds {agreed.value}.",
            place=now.place or loop_place(change.now),
            contract_place=agreed.place,
            fixes=restoring(change, "lr", "Restore learning rate"),
            severity=severity(agreed),
        )
    elif change.sides is not None:
        sides = change.sides
        yield from list(_schedule(*sides))[:1] or list(_cadence(*sides))[:1]


def _schedule(now: Program, was: Program) -> Iterator[Violation]:
    rates, held = assigned_rates(now), assigned_rates(was)
    made, made_before = schedulers(now), schedulers(was)
    place = loop_place(now)
    if (held or made_before) and not (rates or made) and place is not None:
        yield _finding(
            "The learning rate's schedule is gone",
            place,
            certain=has_update(now) and not _steps(now),
        )
    if (rates or made) and not (held or made_before):
        first = (rates or made)[0]
        yield _finding("A learning rate schedule was added", first.place, certain=False)
    for mine, theirs in ((rates, held), (made, made_before)):
        texts = {formula.text for formula in theirs}
        for formula in mine:
            if theirs and formula.text not in texts:
                found = _compared(formula, theirs)
                if found is not None:
                    yield found


def _steps(program: Program) -> bool:
    return bool(scheduler_steps(program))


def _compared(formula: Formula, held: list[Formula]) -> Violation | None:
    """Another number in one of the baseline's formulas is certain, another formula is not."""
    twin = next((other for other in held if other.shape == formula.shape), None)
    numbers = zip(formula.numbers, twin.numbers, strict=False) if twin is not None else ()
    pair = next(((a, b) for a, b in numbers if not same_number(a, b)), None)
    if pair is None:
        if twin is not None:
            return None
        what = "The learning rate is computed by another formula"
        return _finding(what, formula.place, certain=False)
    what = f"The learning rate's schedule has {pair[0]} where the baseline has {pair[1]}"
    return _finding(what, formula.place, certain=True)


def _cadence(now: Program, was: Program) -> Iterator[Violation]:
    """The scheduler steps as often as the optimizer."""
    stepped, held = scheduler_steps(now), scheduler_steps(was)
    place = loop_place(now)
    if held and not stepped and not assigned_rates(now) and place is not None:
        yield _finding(
            "The learning rate's scheduler is never stepped", place, certain=has_update(now)
        )
    elif len(stepped) > len(held) > 0:
        what = "The learning rate's scheduler is stepped more often"
        yield _finding(what, stepped[-1].place, certain=False)
    elif stepped and held:
        more, before = _loops_beyond(now, stepped[0]), _loops_beyond(was, held[0])
        extra = [test for test in stepped[0].conditions if test not in held[0].conditions]
        if more > before:
            what = "The learning rate's scheduler is stepped in every micro-step"
            yield _finding(what, stepped[0].place, certain=True)
        elif more < before or extra:
            what = "The learning rate's scheduler is stepped at other times"
            yield _finding(what, stepped[0].place, certain=False)


def _loops_beyond(program: Program, call: Call) -> int:
    """How many loops stand around a call beyond those around the update, in one function."""
    training = program.work.training
    for site in training.steps if training is not None else ():
        if site.scope is call.site.scope:
            mine, theirs = (
                sum(isinstance(a, ast.For | ast.While) for a in s.scope.source.ancestors(s.call))
                for s in (call.site, site)
            )
            return mine - theirs
    return 0


def _finding(what: str, place: Place, certain: bool) -> Violation:
    text = f"{what}; the contract holds the baseline's learning rate at each update."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
