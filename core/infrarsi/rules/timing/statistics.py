"""T304: times are averaged as in the baseline.

The least of several times, a low percentile or an average without the slow or the first steps is
always faster than the plain one. What is printed is followed back to the clock: statistics that
are applied on the way, values that are left out and the conditions under which one is kept are
compared.

Mend it by printing the time as the baseline does.
"""

import ast
from collections.abc import Iterator, Sequence

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.scopes import Guard, Scope
from infrarsi.reading.values import Known
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.timing.amounts import Amount, Output, amounts, outputs, shorter

CODE = "T304"
_MILD = {"median", "nanmedian", "median_low", "median_high", "median_grouped", "sorted", "sort"}
_FEW = 2
_HELD = "the contract holds that times are averaged as in the baseline"


def find(change: Change) -> Iterator[Violation]:
    """An error where only chosen times are printed or more of them left out, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    for power in (1, -1):
        after = [o for o in outputs(now) if o.amount.power == power]
        before = [o.amount for o in outputs(was) if o.amount.power == power]
        if after and before:
            yield from _chosen(after, before)
            yield from _first_left_out(after, before)
            yield from _kept_under(now, after, was, before)


def _chosen(after: Sequence[Output], before: Sequence[Amount]) -> Iterator[Violation]:
    known = {name for amount in before for name in amount.statistics}
    fresh = [o for o in after if o.amount.statistics - known]
    if not fresh:
        return
    name = min(fresh[0].amount.statistics - known)
    had_plain = any(not amount.statistics for amount in before)
    has_plain = any(not output.amount.statistics for output in after)
    if had_plain and has_plain:
        return
    certain = had_plain and name not in _MILD
    what = f"{'Times' if fresh[0].amount.power == 1 else 'Rates'} are taken by `{name}`"
    yield _found(what, fresh[0], "error" if certain else "warning")


def _first_left_out(after: Sequence[Output], before: Sequence[Amount]) -> Iterator[Violation]:
    held = max(amount.first for amount in before)
    for output in after:
        first = output.amount.first
        if first > held:
            severity: Severity = "warning" if held == 0 and first <= _FEW else "error"
            yield _found(
                f"The first {first} times are left out instead of {held}", output, severity
            )
            return


def _kept_under(
    now: Program, after: Sequence[Output], was: Program, before: Sequence[Amount]
) -> Iterator[Violation]:
    """Times that count only if they are short, or only from a later step on."""
    held = max((limit for a in before for limit in limits(was, a.guards)), default=None)
    picks = any(on_time(was, guard, scope) for a in before for guard, scope in a.guards)
    free = any(not _restricted(now, output.amount) for output in after)
    for output in after:
        for guard, scope in output.amount.guards:
            if not picks and on_time(now, guard, scope):
                certain: Severity = "warning" if free else "error"
                yield _found("Only some times are kept, by how long they are", output, certain)
                return
        later = list(limits(now, output.amount.guards))
        if later and held is not None and max(later) > held:
            what = f"Times count from step {max(later):g} on instead of {held:g}"
            yield _found(what, output, "error")
            return
        if later and held is None and max(later) > 1:
            what = f"Times count only from step {max(later):g} on"
            yield _found(what, output, "warning")
            return


def _restricted(program: Program, amount: Amount) -> bool:
    return any(on_time(program, guard, scope) for guard, scope in amount.guards)


def on_time(program: Program, guard: Guard, scope: Scope) -> bool:
    """Whether a condition holds for short times: `elapsed < best`."""
    if guard.test is None:
        return False
    sides = shorter([guard.test], guard.holds)
    return any(amounts(program, side, scope) for side in sides)


def limits(program: Program, guards: Sequence[tuple[Guard, Scope]]) -> Iterator[float]:
    """The `n` of conditions such as `step >= n`."""
    for guard, scope in guards:
        for node in walk(guard.test) if guard.test is not None else ():
            match node:
                case ast.Compare(
                    left=ast.Name() | ast.Attribute(),
                    ops=[ast.Gt() | ast.GtE() | ast.Eq()],
                    comparators=[bound],
                ):
                    frame = program.evaluator.frame(scope)
                    value = program.evaluator.value(bound, frame)
                    number = value.value if isinstance(value, Known) else None
                    if isinstance(number, int | float) and not isinstance(number, bool):
                        yield float(number)
                case _:
                    pass


def _found(what: str, output: Output, severity: Severity) -> Violation:
    place: Place = output.scope.source.place(output.node)
    return violation(CODE, f"{what}; {_HELD}.", severity=severity, place=place)
