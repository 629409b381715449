"""E511: offloading, swapping and memory caps stay.

A candidate that moves its state to the host or to disk, or lifts a cap the job runs under, is
measured under another memory budget. Calls and arguments that do so and were not there before,
and caps that are gone, are looked for.

Mend it by restoring the budget.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, removed
from infrarsi.rules.fragments import Fragment, call_key, fresh
from infrarsi.rules.settings import changed_settings

CODE = "E511"
_CAPS = {"set_per_process_memory_fraction", "setrlimit", "set_memory_fraction", "memory_limit"}
_OFFLOADS = {"CPUOffload", "CPUOffloadPolicy", "save_on_cpu", "cpu_offload", "OffloadConfig"}
_ARGUMENTS = {
    "offload_params",
    "offload_optimizer",
    "offload_param",
    "offload_policy",
    "cpu_offload",
}
_WORDS = {"offload", "swap", "nvme", "memory"}
_HELD = "the contract holds the memory budget"


def find(change: Change) -> Iterator[Violation]:
    """An error for a cap that was changed, a warning for offloading that is new."""
    if change.sides is None:
        return
    now, was = change.sides
    for entry in changed_settings(now, was):
        if entry.words & _WORDS and "pin" not in entry.words and "format" not in entry.words:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; {_HELD}.",
                severity="warning",
                place=entry.now.place,
                contract_place=entry.was.place,
            )
    for call in added(_caps(now), _caps(was), call_key):
        yield _found(f"`{call.signature[:60]}` sets another cap", call, None, "error")
    for call in removed(_caps(now), _caps(was), call_key) if not list(_caps(now)) else ():
        yield _found(f"The cap `{call.signature[:60]}` is gone", None, call, "error")
    for call in added(_offloads(now), _offloads(was), call_key):
        yield _found(f"`{call.signature[:60]}` moves state off the device", call, None, "warning")
    for piece in fresh(_arguments(now), _arguments(was)):
        yield violation(
            CODE,
            f"`{piece.text[:60]}` moves state off the device; {_HELD}.",
            severity="warning",
            place=piece.place,
        )


def _caps(program: Program) -> list[Call]:
    return [call for call in program.called(_CAPS) if not call.is_dead]


def _offloads(program: Program) -> list[Call]:
    return [call for call in program.called(_OFFLOADS) if not call.is_dead]


def _arguments(program: Program) -> list[Fragment]:
    """`offload_params=True` and its kin."""
    held = program.by_file(_arguments_in)
    return [Fragment(program, scope, keyword) for scope, keyword in held]


def _arguments_in(program: Program, module: Scope) -> list[tuple[Scope, ast.keyword]]:
    return [
        (call.site.scope, keyword)
        for call in program.calls_of(module)
        for keyword in call.site.call.keywords
        if keyword.arg in _ARGUMENTS
        and call.name not in _OFFLOADS
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        and not (isinstance(keyword.value, ast.Call))
    ]


def _found(what: str, call: Call | None, held: Call | None, severity: Severity) -> Violation:
    return violation(
        CODE,
        f"{what}; {_HELD}.",
        severity=severity,
        place=call.place if call is not None else None,
        contract_place=held.place if held is not None else None,
    )
