"""L203: parameters keep 32 bits.

Casting the model to a 16-bit format (`model.bfloat16()`, `.half()`, `.to(torch.bfloat16)`, a
16-bit default type) is not the same training: updates below about a thousandth of a weight are
rounded away. Computing in 16 bits under `torch.autocast`, with 32-bit parameters and optimizer
state, is allowed.

Mend it by removing the cast and putting the forward pass under autocast.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.rules.change import Change

CODE = "L203"
_WORDS = {"bf16": "bfloat16", "fp16": "float16"}


def find(change: Change) -> Iterator[Violation]:
    """An error for a cast that is new and certain, a warning for one that may happen."""
    fact, agreed = change.fact("parameters"), change.agreed("parameters")
    baseline = change.was.reading.fact("parameters") if change.was is not None else None
    held = agreed.value or (baseline.value if baseline is not None else None) or "fp32"
    if held != "fp32" or fact.place is None:
        return
    if fact.value in _WORDS:
        yield violation(
            CODE,
            f"Parameters are cast to {_WORDS[str(fact.value)]}; the contract holds them in "
            "float32. Use autocast for 16-bit compute.",
            place=fact.place,
        )
    elif fact.unknown is not None and agreed.unknown is None and change.is_written("parameters"):
        yield violation(
            CODE,
            f"Parameters may lose their 32 bits: {fact.unknown}.",
            severity="warning",
            place=fact.place,
        )
