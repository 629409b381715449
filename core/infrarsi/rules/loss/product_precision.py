"""L216: products are computed in the declared precision.

TF32 and reduced-precision reductions change every matrix product of a float32 job, and hand-made
casts to 16 bits inside the model hide such a change. bfloat16 autocast is allowed; what it does
is written down and can be compared.

Mend it by removing the flag or the cast; use autocast.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import Known, Symbol
from infrarsi.reading.written_out import CASTS, FORMATS
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added

CODE = "L216"
_FLAGS = {
    "allow_tf32": (True,),
    "allow_fp16_reduced_precision_reduction": (True,),
    "allow_fp16_accumulation": (True,),
    "allow_bf16_reduced_precision_reduction": (),
    "fp32_precision": ("tf32", "bf16"),
}
_LOW = {"bf16", "fp16"}


def find(change: Change) -> Iterator[Violation]:
    """An error for flags that lower products' precision, a warning for casts in the model."""
    if change.sides is None:
        return
    now, was = change.sides
    name = "set_float32_matmul_precision"
    for call in added(now.named(name), was.named(name)):
        value = call.argument("precision", 0)
        if isinstance(value, Known) and value.value == "highest":
            continue
        certain = isinstance(value, Known)
        shown = value.value if isinstance(value, Known) else "unknown"
        yield _finding(f"float32 products are computed in {shown} precision", call.place, certain)
    held = [flag for flag, _, _ in _flags(was)]
    for flag, place, certain in _flags(now):
        if flag not in held:
            yield _finding(f"{flag.partition(' ')[0]} lowers products' precision", place, certain)
    for call in added(_casts(now), _casts(was), key=_kind):
        yield _finding("Values in the model are cast to 16 bits", call.place, certain=False)
        return


def _flags(program: Program) -> Iterator[tuple[str, Place, bool]]:
    for name, low in _FLAGS.items():
        for scope, path in program.project.attribute_writes.get(name, []):
            if (
                "backends" not in path
                and "torch" not in path
                and not _of_torch(program, scope, path)
            ):
                continue
            for event in scope.events[path]:
                value = _value(program, scope, event.value)
                if not isinstance(value, Known) or value.value in low:
                    certain = isinstance(value, Known)
                    yield f"{name} {path}", scope.source.place(event.node), certain


def _of_torch(program: Program, scope: Scope, path: str) -> bool:
    root = path.partition(".")[0]
    value = program.evaluator.name(root, program.evaluator.frame(scope))
    return isinstance(value, Symbol) and value.name.startswith("torch")


def _value(program: Program, scope: Scope, node: ast.expr | None) -> object:
    return program.evaluator.value(node, program.evaluator.frame(scope)) if node else None


def _casts(program: Program) -> list[Call]:
    """Casts to 16 bits of values in the model, or in the step around it."""
    return [
        call
        for call in program.named("bfloat16", "half", "to", "type")
        if (call.in_model or call.in_step) and _is_low(call)
    ]


def _is_low(call: Call) -> bool:
    if CASTS.get(call.name) in _LOW:
        return not call.site.call.args
    nodes = [*call.site.call.args, *(k.value for k in call.site.call.keywords)]
    values = [call.program.evaluator.value(node, call.frame) for node in nodes]
    return any(isinstance(v, Symbol) and FORMATS.get(v.name) in _LOW for v in values)


def _kind(call: Call) -> str:
    return "cast"


def _finding(what: str, place: Place, certain: bool) -> Violation:
    text = f"{what}; the contract holds the declared precision, or bfloat16 autocast."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
