"""E510: deterministic and debugging modes are the same on both sides.

A baseline that runs deterministic or with checks loses to a candidate that does not, and the
difference is no gain of the change. Calls and switches of such modes are compared.

Mend it by restoring the mode. To measure without it, lock a baseline without it.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, Severity, Violation, place_of
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered

CODE = "E510"
_DETERMINISTIC = {
    *("use_deterministic_algorithms", "deterministic", "fill_uninitialized_memory"),
    *("set_deterministic_debug_mode", "set_deterministic"),
}
_DEBUGGING = {
    *("set_detect_anomaly", "detect_anomaly", "set_sync_debug_mode", "gradcheck", "profile"),
    *("emit_nvtx", "check_numerics", "set_warn_always", "set_debug_level"),
}
_VARIABLES = ("CUDA_LAUNCH_BLOCKING", "TORCH_SHOW_CPP", "TORCH_DISTRIBUTED_DEBUG", "PYTHONDEVMODE")
_HELD = "the contract holds deterministic and debugging modes the same on both sides"


def find(change: Change) -> Iterator[Violation]:
    """An error for a deterministic mode that changed, a warning for checks and profilers."""
    if change.sides is None:
        return
    now, was = change.sides
    after, before = _modes(now), _modes(was)
    for piece in fresh(after, before):
        if _is_off(piece.node):
            continue
        yield _found(f"`{piece.text[:60]}` is new", piece, piece.place, None)
    for piece in fresh(before, after):
        yield _found(f"`{piece.text[:60]}` is gone", piece, None, piece.place)
    for name in _VARIABLES:
        values = now.launch.env.get(name), was.launch.env.get(name)
        if values[0] != values[1]:
            text = change.sources.text(CONFIG_PATH)
            line = place_of(text, change.contract.job, "launch") if text is not None else None
            yield violation(
                CODE,
                f"`{name}` is {values[0]} instead of {values[1]}; {_HELD}.",
                severity="warning",
                place=line,
            )


def _found(what: str, piece: Fragment, place: Place | None, held: Place | None) -> Violation:
    is_mode = any(_named(node) in _DETERMINISTIC for node in walk(piece.node))
    severity: Severity = "error" if is_mode else "warning"
    return violation(CODE, f"{what}; {_HELD}.", severity=severity, place=place, contract_place=held)


@remembered
def _modes(program: Program) -> list[Fragment]:
    """Calls and assignments that switch a mode."""
    found: dict[ast.AST, Fragment] = {}
    words = _DETERMINISTIC | _DEBUGGING
    for file, source in program.project.files.items():
        if not any(word in source.text for word in words):
            continue
        for node in source.nodes:
            if _switches(node):
                scope = program.project.scope_of(file, node)
                found[node] = Fragment(program, scope, node)
    return list(found.values())


def _switches(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=func):
            name = _named(func)
            if name == "profile":
                return "profiler" in unparse(func)
            return name in _DETERMINISTIC | _DEBUGGING
        case ast.Assign(targets=[ast.Attribute(attr=name)]):
            return name in _DETERMINISTIC | _DEBUGGING
        case _:
            return False


def _is_off(node: ast.AST) -> bool:
    """Whether a mode is switched off, which is as if it were not there."""
    match node:
        case (
            ast.Call(args=[ast.Constant(value=value), *_])
            | ast.Assign(value=ast.Constant(value=value))
        ):
            return value is False or value == 0
        case _:
            return False


def _named(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""
