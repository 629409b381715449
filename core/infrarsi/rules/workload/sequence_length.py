"""W102: rows must stay as long as they are.

A shorter sequence makes a step cheaper, and attention cheaper still, but trains on less context.
The length is read from how rows are cut (slices, views, the loader) and from the names trainers
give it.

Mend it by restoring the number.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.rules.change import Change
from infrarsi.rules.settings import changed_settings
from infrarsi.rules.workload.effective_batch import rows_cut

CODE = "W102"


def find(change: Change) -> Iterator[Violation]:
    """One finding where the length is another; else what is cut off or changed by name."""
    told = list(_read(change))
    yield from told
    if not told and change.sides is not None:
        now, was = change.sides
        yield from rows_cut(CODE, now, was, axis=1)
        yield from _named(change, now, was)


def _named(change: Change, now: Program, was: Program) -> Iterator[Violation]:
    """A length changed by name, where it cannot be read."""
    if change.count(change.fact("seq_len")) and change.count(change.agreed("seq_len")):
        return
    for entry in changed_settings(now, was):
        if rank_alias("seq_len", entry.name) is not None and entry.ratio is not None:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; the "
                "contract holds the length of rows.",
                severity="warning",
                place=entry.now.place,
                contract_place=entry.was.place,
            )


def _read(change: Change) -> Iterator[Violation]:
    agreed = change.contract.workload.seq_len_tokens
    fact = change.fact("seq_len")
    now = change.count(fact)
    if agreed is None or now is None or now == agreed or not change.is_written("seq_len"):
        return
    held = change.agreed("seq_len")
    restored = change.set_value("seq_len", agreed, f"Restore sequence length {agreed}")
    yield violation(
        CODE,
        f"Rows of {now} tokens instead of {agreed}; the contract holds {agreed}.",
        severity="warning" if held.given or "seq_len" not in change.reading.bindings else "error",
        place=fact.place,
        contract_place=held.place,
        fixes=(restored,) if restored is not None else (),
    )
