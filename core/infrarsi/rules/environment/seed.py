"""E503: the seed stays.

Some seeds make the loss fall sooner than others; choosing one is luck, not speed. All calls that
seed a generator and all settings named seed are compared.

Mend it by restoring the number.
"""

from collections.abc import Iterator

from infrarsi.contract import Fix, Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.values import Known
from infrarsi.rules.change import Change
from infrarsi.rules.difference import removed
from infrarsi.rules.fragments import call_key
from infrarsi.rules.settings import changed_settings

CODE = "E503"
_CALLS = {
    *("manual_seed", "manual_seed_all", "seed", "seed_everything", "set_seed", "seed_all"),
    *("default_rng", "RandomState", "Random", "initial_seed"),
}
_HELD = "the contract holds the baseline's seed"


def find(change: Change) -> Iterator[Violation]:
    """An error for another seed, a warning for one that is set no more or not from a number."""
    if change.sides is None:
        return
    now, was = change.sides
    told: set[tuple[str, int]] = set()
    for entry in changed_settings(now, was):
        if "seed" in entry.words and not isinstance(entry.now.value, bool):
            place = entry.now.place
            if place is not None:
                told.add((place.file, place.line))
            fix = change.rewrite(place, repr(entry.was.value), f"Restore {entry.was.value}")
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; {_HELD}.",
                place=place,
                contract_place=entry.was.place,
                fixes=(fix,) if fix is not None else (),
            )
    if not told:
        yield from _reseeded(change, now, was)


def _reseeded(change: Change, now: Program, was: Program) -> Iterator[Violation]:
    """Seeding calls that are given another number, are gone, or are new."""
    after, before = _seeding(now), _seeding(was)
    fresh = list(removed(before, after, call_key))
    for call in removed(after, before, call_key):
        twin = next((new for new in fresh if new.name == call.name), None)
        if twin is not None:
            fresh.remove(twin)
            yield from _altered(change, twin, call)
        elif len(after) < len(before):
            yield _found(f"`{call.signature[:60]}` is gone", None, call, "warning")
    yield from _new(fresh, before)


def _altered(change: Change, call: Call, held: Call) -> Iterator[Violation]:
    now, was = _number(call), _number(held)
    if was is None or now == was:
        return
    if now is not None:
        yield _found(f"The seed is {now} instead of {was}", call, held, "error", change)
    elif _is_drawn(call):
        yield _found(f"The seed is `{call.signature[:50]}` instead of {was}", call, held, "warning")


def _new(fresh: list[Call], before: list[Call]) -> Iterator[Violation]:
    known = {_number(call) for call in before}
    for call in fresh if before else ():
        number = _number(call)
        if number is None and call.in_loop and not call.in_step:
            yield _found("Seeds are tried in a loop", call, before[0], "warning")
        elif number is not None and number not in known:
            yield _found(f"Another seed, {number}, is set", call, before[0], "warning")


def _seeding(program: Program) -> list[Call]:
    return [call for call in program.called(_CALLS) if call.site.call.args and not call.is_dead]


def _number(call: Call) -> int | None:
    value = call.argument("seed", 0)
    if not isinstance(value, Known) or isinstance(value.value, bool):
        return None
    return value.value if isinstance(value.value, int) else None


def _is_drawn(call: Call) -> bool:
    """Whether a seed comes from the clock or the system."""
    text = call.signature
    return any(word in text for word in ("time", "urandom", "getpid", "randint", "random", "hash"))


def _found(
    what: str, call: Call | None, held: Call, severity: Severity, change: Change | None = None
) -> Violation:
    fixes: tuple[Fix, ...] = ()
    if change is not None and call is not None:
        number = _number(held)
        place = call.site.scope.source.place(call.site.call.args[0])
        fix = change.rewrite(place, str(number), f"Restore {number}")
        fixes = (fix,) if fix is not None else ()
    return violation(
        CODE,
        f"{what}; {_HELD}.",
        severity=severity,
        place=call.place if call is not None else None,
        contract_place=held.place,
        fixes=fixes,
    )
