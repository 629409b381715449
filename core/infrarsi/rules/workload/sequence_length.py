"""W102: rows must stay as long as they are.

A shorter sequence makes a step cheaper, and attention cheaper still, but trains on less context.
The length is read from how rows are cut (slices, views, the loader) and from the names trainers
give it.

Mend it by restoring the number.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.rules.change import Change

CODE = "W102"


def find(change: Change) -> Iterator[Violation]:
    """One finding where the length is another; silent where it cannot be told."""
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
        severity="warning" if held.given else "error",
        place=fact.place,
        contract_place=held.place,
        fixes=(restored,) if restored is not None else (),
    )
