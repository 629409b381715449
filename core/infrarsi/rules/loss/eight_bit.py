"""L213: 8-bit and 4-bit arithmetic only where the contract declares it.

Casting to float8 with a fixed scale, quantising weights or states to int8 is fast and loses
digits that 16-bit autocast keeps.

Mend it by computing in bfloat16 autocast, or lock a contract that declares the format.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope
from infrarsi.rules.change import Change

CODE = "L213"
_CALLS = {
    "_scaled_mm": True,
    "convert_to_float8_training": True,
    "fp8_autocast": True,
    "quantize_per_tensor": True,
    "quantize_per_channel": True,
    "quantize_dynamic": True,
    "fake_quantize_per_tensor_affine": True,
    "_int_mm": True,
    "quantize_": False,
    "prepare_qat": True,
    "Linear8bitLt": True,
    "Linear4bit": True,
    "AdamW8bit": True,
    "Adam8bit": True,
    "PagedAdamW8bit": True,
    "AdamW4bit": True,
    "AdamWFp8": True,
}
_FORMATS = {"int8", "qint8", "quint8", "int4", "uint4"}


def find(change: Change) -> Iterator[Violation]:
    """An error for a format or call that is new, a warning for one that only may compute."""
    if change.sides is None or "8" in str(change.agreed("precision").value):
        return
    now, was = change.sides
    held = {name for name, _, _ in _uses(was)}
    for name, place, certain in _uses(now):
        if name not in held:
            text = f"{name} computes or keeps numbers in 8 bits or fewer"
            yield violation(
                CODE,
                f"{text}; the contract does not declare that.",
                severity="error" if certain else "warning",
                place=place,
            )
            return


def _uses(program: Program) -> Iterator[tuple[str, Place, bool]]:
    for call in program.named(*_CALLS):
        yield call.name, call.place, _CALLS[call.name]
    yield from program.by_file(_formats)


def _formats(program: Program, module: Scope) -> Iterator[tuple[str, Place, bool]]:
    for call in program.calls_of(module):
        for node in [*call.site.call.args, *(k.value for k in call.site.call.keywords)]:
            name = getattr(node, "attr", "")
            certain = name.startswith("float8_")
            if not certain and name not in _FORMATS:
                continue
            if (call.in_step or call.in_model) and not call.is_dead:
                yield name, call.place, certain
