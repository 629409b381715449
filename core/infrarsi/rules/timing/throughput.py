"""T306: tokens per second count what was trained on, by the time it took.

A rate can be raised without training faster: the world size counted twice, a constant in place of
what was fetched, a time that is scaled down. The factor between the clock's reading and what is
printed is compared; units may differ.

Mend it by dividing the step's tokens by the step's time.
"""

import math
from collections.abc import Iterator, Sequence

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import expanded
from infrarsi.rules.timing.amounts import Output, outputs

CODE = "T306"
_HELD = "the contract holds that rates count what was trained on, by the time it took"
_UNITS = (1.0, 60.0, 3600.0, 1024.0, 1048576.0, 86400.0)
_WORLD = ("world", "n_gpu", "ngpu", "num_processes", "n_ranks", "device_count", "dp_size")
_MASKS = ("mask", "ignore", "!= ", "pad", ".ne(")


def find(change: Change) -> Iterator[Violation]:
    """An error where the formula changed and gives more for the same work, else a warning."""
    if change.sides is None:
        return
    now, was = change.sides
    for power in (1, -1):
        after = [o for o in outputs(now) if o.amount.power == power]
        before = [o for o in outputs(was) if o.amount.power == power]
        yield from _scaled(change, after, before)
        if power == -1:
            yield from _counted(now, after, was, before)


def _scaled(
    change: Change, after: Sequence[Output], before: Sequence[Output]
) -> Iterator[Violation]:
    factors = [o.amount.factor for o in before if o.amount.factor]
    spans = {o.amount.window.spans_steps for o in before}
    kept = {o.amount.factor for o in after} & set(factors)
    if kept:
        return
    for output in after:
        amount = output.amount
        if not amount.factor or not factors or spans != {amount.window.spans_steps}:
            continue
        ratios = [amount.factor / factor for factor in factors if factor]
        if any(is_unit(ratio) for ratio in ratios):
            continue
        ratio = min(ratios, key=lambda r: abs(math.log(abs(r)))) if ratios else 1.0
        flatters = ratio > 1 if amount.power == -1 else ratio < 1
        if flatters:
            yield _inflated(change, output, before, ratio)
            return


def _inflated(change: Change, output: Output, before: Sequence[Output], ratio: float) -> Violation:
    now, was = change.sides or (change.now, change.now)
    same_work = all(
        _fact(now, name) is not None and _fact(now, name) == _fact(was, name)
        for name in ("global_batch", "seq_len")
    )
    texts = {_numerator(o) for o in before}
    in_tokens = _fact(now, "seq_len") == ratio
    fresh = _numerator(output) not in texts
    counted = {_count(was, o) for o in before} - {None}
    scaled = _count(now, output) in counted
    certain = output.amount.power == 1 or scaled or (same_work and fresh and not in_tokens)
    severity: Severity = "error" if certain else "warning"
    kind = "The rate" if output.amount.power == -1 else "The time"
    return violation(
        CODE,
        f"{kind} printed is {ratio:.3g} times what it was for the same reading of the clock; "
        f"{_HELD}.",
        severity=severity,
        place=output.scope.source.place(output.node),
    )


def _counted(
    now: Program, after: Sequence[Output], was: Program, before: Sequence[Output]
) -> Iterator[Violation]:
    """Constants where shapes were counted, the world size once more, padding counted."""
    held = [_numerator(output) for output in before]
    for output in after:
        text = _numerator(output)
        if not held or not text or text in held:
            continue
        unknown = all(o.amount.factor is None for o in before)
        if unknown and output.amount.factor is not None:
            what = f"The rate counts a constant, `{text[:60]}`, where it counted what was fetched"
        elif output.amount.factor is None and _n_worlds(text) > max(map(_n_worlds, held)):
            what = f"The rate counts the world size once more: `{text[:60]}`"
        elif any(word in h for h in held for word in _MASKS) and not _has_mask(text):
            what = f"The rate counts padding as well: `{text[:60]}`"
        else:
            continue
        place = output.scope.source.place(output.node)
        yield violation(CODE, f"{what}; {_HELD}.", severity="warning", place=place)
        return


def _numerator(output: Output) -> str:
    if output.amount.numerator is None:
        return ""
    node, scope = output.amount.numerator
    return unparse(expanded(node, scope))


def _count(program: Program, output: Output) -> float | None:
    """What a rate counts, where that is a known number."""
    if output.amount.numerator is None:
        return None
    node, scope = output.amount.numerator
    value = program.evaluator.value(node, program.evaluator.frame(scope))
    number = value.value if isinstance(value, Known) else None
    return float(number) if isinstance(number, int | float) else None


def _n_worlds(text: str) -> int:
    return sum(text.lower().count(word) for word in _WORLD)


def _has_mask(text: str) -> bool:
    return any(word in text for word in _MASKS)


def is_unit(ratio: float) -> bool:
    """Whether two factors differ by a unit only: thousands, minutes, 1024."""
    if ratio <= 0:
        return False
    for unit in _UNITS:
        for number in (ratio / unit, ratio * unit):
            power = math.log10(number) if number > 0 else 0.5
            if abs(power - round(power)) < 1e-9:
                return True
    return False


def _fact(program: Program, name: str) -> object:
    fact = program.reading.fact(name)
    return fact.value if fact is not None else None
