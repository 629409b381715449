"""L203: parameters keep 32 bits.

Casting the model to a 16-bit format (`model.bfloat16()`, `.half()`, `.to(torch.bfloat16)`, a
16-bit default type) is not the same training: updates below about a thousandth of a weight are
rounded away. Computing in 16 bits under `torch.autocast`, with 32-bit parameters and optimizer
state, is allowed.

Mend it by removing the cast and putting the forward pass under autocast.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.flow import is_model
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, mentions

CODE = "L203"
_WORDS = {"bf16": "bfloat16", "fp16": "float16"}


def find(change: Change) -> Iterator[Violation]:
    """An error for a cast that is new and certain, a warning for one that may happen."""
    fact, agreed = change.fact("parameters"), change.agreed("parameters")
    baseline = change.was.reading.fact("parameters") if change.was is not None else None
    yield from _roundabout(change)
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


def _roundabout(change: Change) -> Iterator[Violation]:
    if change.sides is None or change.fact("parameters").place is not None:
        return
    now, was = change.sides
    for call in added(_hidden_casts(now), _hidden_casts(was)):
        yield violation(
            CODE,
            "Weights may be cast to 16 bits; the contract holds them in float32.",
            severity="warning",
            place=call.place,
        )
        return


def _hidden_casts(now: Program) -> list[Call]:
    """Casts of weights one by one, or to a format that is spelled in a roundabout way."""
    return [
        call
        for call in now.named("to", "type", "bfloat16", "half", "set_default_dtype")
        if _names_16_bits(call) and _is_of_weights(call)
    ]


def _names_16_bits(call: Call) -> bool:
    arguments = [*call.site.call.args, *(k.value for k in call.site.call.keywords)]
    text = " ".join([call.name, *(unparse(node) for node in arguments)])
    return any(word in text for word in ("bfloat16", "float16", "half"))


def _is_of_weights(call: Call) -> bool:
    func = call.site.call.func
    if not isinstance(func, ast.Attribute):
        return False
    if call.name == "set_default_dtype" or mentions(func.value, "data", "weight", "parameters"):
        return True
    return is_model(call.program.evaluator, call.program.evaluator.value(func.value, call.frame))
