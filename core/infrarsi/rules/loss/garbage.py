"""L219: nothing reads memory that was never written, and nothing hides what is not finite.

A buffer from `torch.empty` that is only partly written holds what was there before, often the
right answer of an earlier step. `nan_to_num` and skipped steps hide that numbers broke down.

Mend it by writing every element, and by letting non-finite values show.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee

CODE = "L219"
_UNWRITTEN = ("empty", "empty_like", "new_empty", "empty_strided", "resize_", "as_strided")
_HIDING = ("nan_to_num", "nan_to_num_")


def find(change: Change) -> Iterator[Violation]:
    """Warnings: whether memory is written before it is read, only a run tells."""
    if change.sides is None:
        return
    now, was = change.sides
    for call in added(_used(now, *_UNWRITTEN), _used(was, *_UNWRITTEN), key=callee):
        if not _is_filled(call):
            yield _warn(f"`{call.name}` gives memory that may be read before it is written", call)
            break
    for call in added(_used(now, *_HIDING), _used(was, *_HIDING), key=callee):
        yield _warn(f"`{call.name}` hides values that are not finite", call)
        break


def _used(program: Program, *names: str) -> list[Call]:
    return [
        call
        for call in program.named(*names)
        if call.in_step or (call.in_model and call.site.scope.name != "__init__")
    ]


def _is_filled(call: Call) -> bool:
    """Whether the whole buffer is surely written where it is made."""
    parent = call.site.scope.source.parents.get(call.site.call)
    return isinstance(parent, ast.Attribute) and parent.attr in {"fill_", "copy_", "zero_"}


def _warn(what: str, call: Call) -> Violation:
    text = f"{what}; the contract holds that numbers are the baseline's and finite."
    return violation(CODE, text, severity="warning", place=call.place)
