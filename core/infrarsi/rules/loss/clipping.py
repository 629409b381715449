"""L205: gradients are clipped as in the baseline.

Clipping costs a pass over all gradients and sometimes a synchronisation, so leaving it out looks
like a gain. It is part of the optimisation: the same norm, over the same parameters, once in each
step, after the last backward and before the update.

Mend it by clipping to the contract's norm right before the optimizer steps.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Fix, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.edits import Edit
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.project import CallSite
from infrarsi.reading.roles import CLIP_CALLS
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.loss.narrower import narrowing
from infrarsi.rules.loss.sides import has_update, loop_place, moved_fact, restoring, severity

CODE = "L205"
_BY_HAND = (
    "get_total_norm",
    "clip_grads_with_norm_",
    "_foreach_norm",
    "_foreach_mul_",
    "vector_norm",
    "norm",
    "clamp",
    "clamp_",
)


def find(change: Change) -> Iterator[Violation]:
    """An error for another norm, none, another place; a warning where that is not certain."""
    if not has_update(change.now):
        return
    moved = moved_fact(change, "clip")
    if moved is not None:
        now, agreed = moved
        if now.value == "none":
            yield from _gone(change, agreed.value)
            return
        was = agreed.value
        yield violation(
            CODE,
            f"Gradients are clipped at {now.value} instead of {was}; the contract holds {was}.",
            place=now.place or _clip_place(change.now),
            contract_place=agreed.place,
            fixes=restoring(change, "clip", "Restore clipping at"),
            severity=severity(agreed),
        )
        return
    if change.sides is None:
        return
    if change.fact("clip").unknown and change.agreed("clip").value not in (None, "none"):
        yield _warn("The norm gradients are clipped to is not known any more", change.now)
        return
    now, was = change.sides
    if _library_calls(was) and not _library_calls(now):
        yield from _gone(change, change.agreed("clip").value or "the baseline's norm")
        return
    yield from _other_call(now, was)


def _library_calls(program: Program) -> list[Call]:
    """The clipping calls that no function of the workspace answers."""
    own = {scope.name for scope in program.project.scopes.values()}
    return [
        call
        for call in program.named(*CLIP_CALLS)
        if call.callee.startswith("torch.") or call.name not in own
    ]


def _gone(change: Change, agreed: object) -> Iterator[Violation]:
    by_hand = bool(_fresh_names(change))
    place = loop_place(change.now)
    text = f"Gradients are no longer clipped; the contract holds clipping at {agreed}."
    elsewhere = bool(_library_calls(change.now))
    if by_hand or elsewhere:
        text = f"Gradients may no longer be clipped at {agreed}, as the contract holds."
    yield violation(
        CODE,
        text,
        severity="warning" if by_hand or elsewhere else "error",
        place=place,
        fixes=tuple(_restored(change, place)),
    )


def _fresh_names(change: Change) -> set[str]:
    if change.sides is None:
        return set(_BY_HAND)
    now, was = change.sides
    before = {call.name for call in was.called(_BY_HAND) if call.in_step}
    inside = {call.name for call in now.called(_BY_HAND) if call.in_step}
    return inside - before


def _restored(change: Change, place: Place | None) -> Iterator[Fix]:
    """The baseline's clipping statement, put back before the update."""
    if change.was is None or place is None:
        return
    clips = [call for call in change.was.named(*CLIP_CALLS) if call.in_step]
    text = change.sources.text(place.file)
    if not clips or text is None:
        return
    source = clips[0].site.scope.source
    statement = source.written(source.place(source.statement(clips[0].site.call)))
    lines = text.splitlines(keepends=True)
    start = sum(len(line) for line in lines[: place.line - 1])
    indent = lines[place.line - 1][: place.column - 1]
    if "\n" in statement or indent.strip():
        return
    edit = Edit(file=place.file, start=start, old="", new=f"{indent}{statement}\n")
    yield Fix(title="Clip before the update again", edits=(edit,))


def _other_call(now: Program, was: Program) -> Iterator[Violation]:
    """The same norm, but of another kind, under a condition, elsewhere or of fewer parameters."""
    call, before = _clip(now), _clip(was)
    if call is None or before is None:
        return
    if _kind(call) != _kind(before):
        yield _error(f"Gradients are clipped by {call.name} instead of {before.name}", call)
        return
    extra = _extra_conditions(now, call, before)
    if extra:
        certain = any(_counts_steps(now, test) for test in extra)
        yield _condition(call, extra[0], certain)
    elif _position(now, call) != _position(was, before):
        yield from _elsewhere(now, call, _position(now, call))
    else:
        yield from _fewer(now, call, was, before)


def _clip(program: Program) -> Call | None:
    return next((call for call in program.named(*CLIP_CALLS) if call.in_step), None)


def _kind(call: Call) -> tuple[bool, object]:
    norm = call.argument_node("norm_type", 2)
    text = "2.0" if norm is None else call.program.spell(norm, call.site.scope)
    return "value" in call.name, {"2": "2.0"}.get(text, text)


def _extra_conditions(now: Program, call: Call, before: Call) -> list[str]:
    steps = now.work.training.steps if now.work.training is not None else ()
    shared = set(before.conditions)
    for site in steps:
        shared |= set(_call_of(now, site).conditions)
    return [test for test in call.conditions if test not in shared]


def _call_of(program: Program, site: CallSite) -> Call:
    return Call(program, site, site.name, True, False)


def _counts_steps(program: Program, test: str) -> bool:
    """Whether a test asks for the loop's own counter."""
    training = program.work.training
    loop = training.update.node if training is not None and training.update is not None else None
    if not isinstance(loop, ast.For):
        return False
    counters = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    read = {n.id for n in walk(ast.parse(test, mode="eval")) if isinstance(n, ast.Name)}
    return bool(counters & read)


def _condition(call: Call, test: str, certain: bool) -> Violation:
    return violation(
        CODE,
        f"Gradients are clipped only under `{test[:80]}`; the contract holds it in every step.",
        severity="error" if certain else "warning",
        place=call.place,
    )


def _position(program: Program, call: Call) -> tuple[str, int]:
    """Whether it stands before or after the update, and in how many loops more than that."""
    training = program.work.training
    for site in training.steps if training is not None else ():
        if site.scope is call.site.scope:
            n_more = _n_loops(call.site) - _n_loops(site)
            before = call.site.call.lineno < site.call.lineno
            return ("before" if before else "after"), n_more
    return ("apart", 0)


def _n_loops(site: CallSite) -> int:
    around = site.scope.source.ancestors(site.call)
    return sum(isinstance(node, ast.For | ast.While) for node in around)


def _elsewhere(now: Program, call: Call, position: tuple[str, int]) -> Iterator[Violation]:
    where, n_more = position
    if where == "after":
        yield _error("Gradients are clipped after the update", call)
    elif n_more > 0:
        yield _error("Gradients are clipped in every micro-step, not once a step", call)


def _fewer(now: Program, call: Call, was: Program, before: Call) -> Iterator[Violation]:
    node = call.argument_node("parameters", 0)
    held = before.argument_node("parameters", 0)
    if node is None or held is None:
        return
    narrowed = narrowing(
        now.write_out(node, call.site.scope), was.write_out(held, before.site.scope)
    )
    if narrowed is not None:
        yield _error(f"Only some parameters' gradients are clipped ({narrowed[0]})", call)


def _error(what: str, call: Call) -> Violation:
    text = f"{what}; the contract holds the baseline's clipping, once before each update."
    return violation(CODE, text, place=call.place)


def _warn(what: str, program: Program) -> Violation:
    place = _clip_place(program) or loop_place(program)
    text = f"{what}; the contract holds the baseline's clipping."
    return violation(CODE, text, severity="warning", place=place)


def _clip_place(program: Program) -> Place | None:
    call = _clip(program) if program.is_followed else None
    return call.place if call is not None else None
