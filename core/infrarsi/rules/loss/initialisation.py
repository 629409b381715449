"""L223: initial and tied weights are the baseline's.

Another scale, another distribution or skipping initialisation starts another training; untied
weights are another model. Weights that are never initialised anew start a little sooner, which
is no gain either.

Mend it by initialising as before.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee, removed
from infrarsi.rules.loss.sides import loop_place

CODE = "L223"


def find(change: Change) -> Iterator[Violation]:
    """An error for other numbers or tying, a warning for draws that are made elsewhere."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _tying(now, was)
    yield from _initialisers(now, was)
    yield from _applied(now, was)
    yield from _parameters(now, was)


def _tying(now: Program, was: Program) -> Iterator[Violation]:
    ties, held = _ties(now), _ties(was)
    shared = any(call.in_model for call in now.called(("linear",)))
    if held and not ties:
        scope, node = _model_scope(now)
        place = scope.source.place(node) if scope is not None and node is not None else None
        yield _finding("Weights are no longer tied", place or loop_place(now), not shared)
    elif ties and not held:
        yield _finding("Weights are tied that were not", ties[-1], certain=True)


def _ties(program: Program) -> list[Place]:
    """`self.head.weight = self.tok.weight`."""
    return [
        scope.source.place(event.node)
        for scope, path in program.project.attribute_writes.get("weight", [])
        for event in scope.events[path]
        if isinstance(event.value, ast.Attribute) and event.value.attr == "weight"
    ]


def _model_scope(program: Program) -> tuple[Scope | None, ast.AST | None]:
    for scope in program.module_scopes():
        if scope.name == "__init__":
            return scope, scope.node
    return None, None


def _initialisers(now: Program, was: Program) -> Iterator[Violation]:
    calls, held = _init_calls(now), _init_calls(was)
    fresh = list(added(calls, held, key=_numbers))
    gone = list(removed(calls, held, key=_numbers))
    for call in fresh:
        twin = next((old for old in gone if old.name == call.name), None)
        if twin is not None:
            what = f"Weights start from {_numbers(call)} instead of {_numbers(twin)}"
            yield _finding(what, call.place, certain=_is_plain(call) and _is_plain(twin))
        else:
            yield _finding(f"Weights start from {_numbers(call)}", call.place, certain=False)
        return
    if gone:
        place = calls[0].place if calls else loop_place(now)
        what = f"Weights no longer start from {_numbers(gone[0])}"
        yield _finding(what, place, certain=not calls)


def _applied(now: Program, was: Program) -> Iterator[Violation]:
    """`self.apply(self._init_weights)`, without which an initialiser is never run."""
    if list(was.named("apply")) and not list(now.named("apply")) and _init_calls(now):
        applied = next(iter(was.named("apply"))).site.call.args
        name = unparse(applied[0]) if applied else ""
        if name and not now.called((name.rpartition(".")[2],)):
            scope, node = _model_scope(now)
            place = scope.source.place(node) if scope is not None and node is not None else None
            yield _finding(f"`{name}` is no longer applied", place or loop_place(now), True)


def _init_calls(program: Program) -> list[Call]:
    names = set(program.by_file(_of_torch))
    names |= {"normal_", "uniform_", "trunc_normal_", "reset_parameters", "skip_init"}
    return [call for call in program.named(*names) if not call.in_step or ".init." in call.callee]


def _of_torch(program: Program, module: Scope) -> set[str]:
    return {call.name for call in program.calls_of(module) if ".init." in call.callee}


def _numbers(call: Call) -> str:
    """The initialiser and its numbers, without the weight it is given."""
    given = call.site.call.args[1:] if ".init." in call.callee else call.site.call.args
    scope = call.site.scope
    keywords = sorted(
        f"{k.arg}={call.program.spell(k.value, scope)}"
        for k in call.site.call.keywords
        if k.arg not in {"generator", "tensor"} and not _is_default(k)
    )
    return f"{call.name}({', '.join([*(call.program.spell(a, scope) for a in given), *keywords])})"


def _is_default(keyword: ast.keyword) -> bool:
    value = getattr(keyword.value, "value", None)
    return (keyword.arg == "mean" and value in (0, 0.0)) or (keyword.arg == "a" and value == 0)


def _is_plain(call: Call) -> bool:
    text = _numbers(call)
    inner = text.partition("(")[2].rstrip(")")
    return all(c in "0123456789.=-+e, abcdefghijklmnopqrstuvwxyz_" for c in inner) and "." in inner


def _parameters(now: Program, was: Program) -> Iterator[Violation]:
    """Parameters made directly: `nn.Parameter(torch.randn(n, d) * 0.02)`."""
    fresh = list(added(now.named("Parameter"), was.named("Parameter")))
    gone = list(removed(now.named("Parameter"), was.named("Parameter")))
    for call in fresh:
        if any(callee(old) == callee(call) for old in gone):
            yield _finding("A parameter starts from other values", call.place, certain=False)
            return


def _finding(what: str, place: Place | None, certain: bool) -> Violation:
    text = f"{what}; the contract holds the baseline's initial weights."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
