"""W111: padding, packing and the last partial batch stay.

Padding that counts as work, documents that see each other, or a remainder that is dropped change
what a step trains on. The collate function, `drop_last`, padding settings and the masks given to
the model are compared.

Mend it by restoring them.
"""

from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import FunctionValue
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, altered, callee, keywords
from infrarsi.rules.settings import changed_settings

CODE = "W111"
_WORDS = {"pad", "padding", "packing", "packed", "pack", "truncation"}
_NAMES = {"drop_last", "dataloader_drop_last", "group_by_length", "pad_to_multiple_of"}
_MASKS = ("attention_mask", "attn_mask", "mask", "position_ids", "cu_seqlens", "key_padding_mask")
_PADS = {"pad_sequence", "pack_padded_sequence", "DataCollatorForLanguageModeling", "pad"}
_HELD = "the contract holds padding, packing, masks and the last partial batch"


def find(change: Change) -> Iterator[Violation]:
    """An error where the last batch is dropped or kept otherwise, a warning for the rest."""
    if change.sides is None:
        return
    now, was = change.sides
    for entry in changed_settings(now, was):
        if entry.name in _NAMES or entry.words & _WORDS:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; {_HELD}.",
                severity="error" if entry.name in _NAMES else "warning",
                place=entry.now.place,
                contract_place=entry.was.place,
            )
    yield from _loaders(now, was)
    yield from _collates(now, was)
    yield from _masks(now, was)
    for call in added(now.named(*_PADS), was.named(*_PADS), callee):
        if not call.in_model:
            yield _found(f"Rows are padded or packed by `{call.signature[:60]}`", call, None)


def _loaders(now: Program, was: Program) -> Iterator[Violation]:
    names = ("DataLoader", "StatefulDataLoader", "BatchSampler", "DistributedSampler")
    for pair in altered(now.named(*names), was.named(*names)):
        after, before = keywords(pair.now), keywords(pair.was)
        drops, dropped = after.get("drop_last", "False"), before.get("drop_last", "False")
        if drops != dropped and {drops, dropped} <= {"True", "False"}:
            yield _found(
                f"`drop_last` is {drops} instead of {dropped}", pair.now, pair.was, "error"
            )


def _collates(now: Program, was: Program) -> Iterator[Violation]:
    """Another function makes batches of rows."""
    after, before = _collators(now), _collators(was)
    names = {scope.name for scope in before}
    for scope in after:
        if before and scope.name not in names:
            yield violation(
                CODE,
                f"Batches are made by `{scope.name}` instead of `{before[0].name}`; {_HELD}.",
                severity="warning",
                place=scope.source.place(scope.node),
                contract_place=before[0].source.place(before[0].node),
            )


def _collators(program: Program) -> list[Scope]:
    found: list[Scope] = []
    for made in program.work.fetching.loaders:
        for keyword in made.call.keywords:
            if keyword.arg == "collate_fn":
                value = program.evaluator.value(keyword.value, made.frame)
                if isinstance(value, FunctionValue):
                    found.append(value.scope)
    return found + [
        scope
        for scope in program.work.fetching.scopes
        if "collat" in scope.name.lower() and scope not in found
    ]


def _masks(now: Program, was: Program) -> Iterator[Violation]:
    """Masks the model was given and is given no more."""
    after, before = _given(now), _given(was)
    for name in before:
        if name not in after and now.work.flow.forwards:
            yield _found(f"The model is no longer given `{name}`", _forward(now), _forward(was))


def _given(program: Program) -> set[str]:
    return {
        keyword.arg
        for site in program.work.flow.forwards
        for keyword in site.call.keywords
        if keyword.arg in _MASKS
    }


def _forward(program: Program) -> Call | None:
    sites = {site.call for site in program.work.flow.forwards}
    return next((call for call in program.calls if call.site.call in sites), None)


def _found(
    what: str, call: Call | None, held: Call | None, severity: Severity = "warning"
) -> Violation:
    return violation(
        CODE,
        f"{what}; {_HELD}.",
        severity=severity,
        place=call.place if call is not None else None,
        contract_place=held.place if held is not None else None,
    )
