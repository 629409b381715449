"""W101: the effective batch must stay.

One optimizer step works on micro-batch x accumulation x processes rows. Halving it halves the
time of a step and is no speed-up: the optimizer sees noisier gradients, and fewer rows are
trained on per step. The product is computed from the source and the launch line, through
constants, arguments and formulas, so trading one factor for another passes. Parts newly taken of
the fetched rows count as well.

Mend it by restoring the number, or by letting another factor make up for it: twice the
micro-batch with half the accumulation is the same step.
"""

from collections.abc import Callable, Iterator

from infrarsi.contract import Fact, Fix, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.reading.values import Known, Value
from infrarsi.rules.change import Change
from infrarsi.rules.difference import altered
from infrarsi.rules.settings import ChangedSetting, changed_settings, settings
from infrarsi.rules.workload.counters import depends_on_step
from infrarsi.rules.workload.cuts import new_cuts

CODE = "W101"
_LOADERS = ("DataLoader", "StatefulDataLoader")
_FACTORS = ("micro_batch", "accumulation", "world_size")
_WORDS = {
    "micro_batch": "micro-batch",
    "accumulation": "accumulation",
    "world_size": "processes",
    "global_batch": "global batch",
}


def find(change: Change) -> Iterator[Violation]:
    """One finding where the product is another; else what is cut off or changed by name."""
    told = list(_multiplied(change))
    yield from told
    if not told and change.sides is not None:
        now, was = change.sides
        yield from rows_cut(CODE, now, was, axis=0)
        yield from _named(change, now, was)


def rows_cut(code: str, now: Program, was: Program, axis: int) -> Iterator[Violation]:
    """Parts newly taken of fetched rows along an axis, where the step's number plays no role."""
    what = "rows of a step" if axis == 0 else "tokens of a row"
    for cut in new_cuts(now, was):
        if cut.axis == axis and not depends_on_step(now, cut.piece.node):
            yield violation(
                code,
                f"Only a part of the {what} is used: `{cut.piece.text[:60]}`; the contract holds "
                "all of them.",
                severity="error" if cut.certain else "warning",
                place=cut.piece.place,
            )


def _named(change: Change, now: Program, was: Program) -> Iterator[Violation]:
    """Factors changed by name, where the product cannot be read."""
    if change.count(change.fact("global_batch")) and change.count(change.agreed("global_batch")):
        return
    entries = [entry for entry in changed_settings(now, was) if _is_factor(entry)]
    product = 1.0
    for entry in entries:
        product *= entry.ratio or 1.0
    derived = any(
        rank_alias("global_batch", setting.name) is not None
        for several in settings(now).values()
        for setting in several
    ) and not any(rank_alias("global_batch", entry.name) is not None for entry in entries)
    if not any(rank_alias("micro_batch", entry.name) is not None for entry in entries):
        yield from _loaded(now, was, product)
    if not entries or derived or abs(product - 1.0) < 1e-9:
        return
    changes = ", ".join(f"{e.now.path} {e.now.value} instead of {e.was.value}" for e in entries)
    yield violation(
        CODE,
        f"{changes}: {product:.3g} times the rows per step, as far as can be read; the contract "
        "holds them.",
        severity="warning",
        place=entries[0].now.place,
        contract_place=entries[0].was.place,
    )


def _loaded(now: Program, was: Program, ratio: float) -> Iterator[Violation]:
    """Loaders that give another number of rows at once, which no other factor makes up for."""
    for pair in altered(now.named(*_LOADERS), was.named(*_LOADERS)):
        rows, held = pair.now.argument("batch_size", 1), pair.was.argument("batch_size", 1)
        n_now, n_was = _rows(rows), _rows(held)
        if n_now and n_was and abs(ratio * n_now / n_was - 1.0) > 1e-9 and n_now != n_was:
            yield violation(
                CODE,
                f"The loader gives {n_now} rows at once instead of {n_was}; the contract holds the "
                "rows per step.",
                severity="warning",
                place=pair.now.place,
                contract_place=pair.was.place,
            )


def _rows(value: Value | None) -> int | None:
    number = value.value if isinstance(value, Known) else None
    return number if type(number) is int else None


def _is_factor(entry: ChangedSetting) -> bool:
    if entry.words & {"eval", "val", "valid", "validation", "test"} or entry.ratio is None:
        return False
    names = ("micro_batch", "accumulation", "global_batch")
    return any(rank_alias(canonical, entry.name) is not None for canonical in names)


def _multiplied(change: Change) -> Iterator[Violation]:
    agreed = change.contract.workload.global_batch_rows
    now = change.count(change.fact("global_batch"))
    if agreed is None or now is None or now == agreed:
        return
    edited = _edited(change)
    if not change.is_written(edited.name):
        return
    yield violation(
        CODE,
        f"{_sequences(now)} per step instead of {agreed}: {_product(change.fact, change)}; "
        f"the contract holds {agreed} ({_product(change.agreed, change)}).",
        severity="error" if _is_certain(change, edited.name) else "warning",
        place=edited.place or change.fact("global_batch").place,
        contract_place=change.agreed(edited.name).place,
        fixes=tuple(_fixes(change, edited.name, agreed)),
    )


def _is_certain(change: Change, edited: str) -> bool:
    """Whether a literal or the launch line makes the difference, not how the code is read."""
    if change.agreed("global_batch").given:
        return False
    return edited == "world_size" or edited in change.reading.bindings


def _edited(change: Change) -> Fact:
    """The fact that was changed, the surest first: the global batch where it is a literal."""
    rows = change.fact("global_batch")
    if _is_own_literal(change):
        return rows
    for name in _FACTORS:
        fact, agreed = change.fact(name), change.agreed(name)
        if fact.value is not None and agreed.value is not None and fact.value != agreed.value:
            return fact
    return rows


def _is_own_literal(change: Change) -> bool:
    """Whether the rows of a step are set in one place that is neither of the factors'."""
    place = change.fact("global_batch").place
    return place is not None and place not in (
        change.fact("micro_batch").place,
        change.fact("accumulation").place,
    )


def _fixes(change: Change, edited: str, agreed_rows: int) -> Iterator[Fix]:
    restored = _restore(change, edited, agreed_rows)
    if restored is not None:
        yield restored
    if edited != "global_batch":
        yield from _compensations(change, edited, agreed_rows)


def _restore(change: Change, edited: str, agreed_rows: int) -> Fix | None:
    agreed = change.count(change.agreed(edited))
    value = agreed_rows if edited == "global_batch" else agreed
    if value is None:
        return None
    return change.set_value(edited, value, f"Restore {_WORDS[edited]} {value}")


def _compensations(change: Change, edited: str, agreed_rows: int) -> Iterator[Fix]:
    """Another factor, set by a literal of its own, that brings the product back."""
    counts = {name: change.count(change.fact(name)) for name in _FACTORS}
    for other in ("accumulation", "micro_batch"):
        now = counts[other]
        rest = [counts[name] for name in _FACTORS if name != other]
        known = [factor for factor in rest if factor is not None]
        if other == edited or now is None or len(known) != len(rest):
            continue
        product = known[0] * known[1]
        needed = agreed_rows // product if product else 0
        if needed * product != agreed_rows or not _independent(change, edited, other):
            continue
        verb = "Accumulate" if other == "accumulation" else "Use micro-batch"
        title = f"{verb} {needed} instead of {now}, so that {_sequences(agreed_rows)} per step stay"
        fix = change.set_value(other, needed, title)
        if fix is not None:
            yield fix


def _independent(change: Change, edited: str, other: str) -> bool:
    bindings = change.reading.bindings
    if edited == "world_size":
        return other in bindings
    return edited in bindings and other in bindings and bindings[edited] != bindings[other]


def _product(fact_of: Callable[[str], Fact], change: Change) -> str:
    parts: list[str] = []
    for name in _FACTORS:
        count = change.count(fact_of(name))
        value = "?" if count is None else str(count)
        if name == "world_size":
            parts.append(f"{value} process" if count == 1 else f"{value} processes")
        else:
            parts.append(f"{_WORDS[name]} {value}")
    return " x ".join(parts)


def _sequences(rows: int) -> str:
    return f"{rows} sequence" if rows == 1 else f"{rows} sequences"
