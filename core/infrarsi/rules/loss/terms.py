"""L206: auxiliary losses, dropout and weight decay stay.

A router's balance loss, a z-loss, dropout or weight decay cost little, but leaving them out saves
that little and changes what is trained. Terms of the loss are compared with their weights, also
those that modules compute themselves.

Mend it by restoring the term or the number.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.objective import Objective, Term
from infrarsi.reading.scopes import Scope
from infrarsi.rules.change import Change
from infrarsi.rules.loss.module_terms import changed_terms
from infrarsi.rules.loss.sides import (
    alive,
    loop_place,
    moved_fact,
    objectives,
    restoring,
    same_number,
    severity,
)

CODE = "L206"
_DROPOUTS = {"Dropout": 0, "Dropout1d": 0, "Dropout2d": 0, "AlphaDropout": 0, "dropout": 1}


def find(change: Change) -> Iterator[Violation]:
    """An error for a term, dropout or weight decay that surely went or changed its weight."""
    yield from _decay(change)
    both = objectives(change)
    if both is not None:
        yield from _terms(*both)
    if change.sides is not None:
        for changed in changed_terms(*change.sides):
            yield _breach(changed.what, changed.place, certain=changed.certain)
        yield from _dropout(*change.sides)


def _decay(change: Change) -> Iterator[Violation]:
    moved = moved_fact(change, "weight_decay")
    if moved is not None and moved[0].value == 0:
        now, agreed = moved
        yield violation(
            CODE,
            f"Weight decay is dropped; the contract holds {agreed.value}.",
            place=now.place or loop_place(change.now),
            contract_place=agreed.place,
            fixes=restoring(change, "weight_decay", "Restore"),
            severity=severity(agreed),
        )


def _terms(now: Objective, was: Objective) -> Iterator[Violation]:
    place = now.main.place or now.place
    weights, held = _weights(now), _weights(was)
    if len(weights) < len(held):
        missing = next((term for term in _others(was) if term.text not in _texts(now)), None)
        name = f" (weight {_ratio(was, missing):g})" if missing is not None else ""
        yield _breach(f"A term of the loss is dropped{name}", place, certain=now.is_whole)
        return
    for (weight, by), (weight_held, by_held) in zip(weights, held, strict=False):
        if by == by_held and not same_number(weight, weight_held):
            what = f"An auxiliary loss weighs {weight:g} instead of {weight_held:g}"
            yield _breach(what, place, certain=now.is_whole and was.is_whole)
            return
        if by != by_held:
            yield _breach("The weight of an auxiliary loss may differ", place, certain=False)
            return


def _texts(objective: Objective) -> set[str]:
    return {term.text for term in _others(objective)}


def _others(objective: Objective) -> list[Term]:
    main = objective.main
    return [term for term in objective.terms if term is not main and term.factor != 0]


def _ratio(objective: Objective, term: Term) -> float:
    return term.factor / (objective.main.factor or 1.0)


def _weights(objective: Objective) -> list[tuple[float, tuple[str, ...]]]:
    """The other terms' weights relative to the loss itself, in the order of their cores."""
    common = objective.main.by
    ordered = sorted(_others(objective), key=lambda term: term.text)
    return [
        (_ratio(objective, term), tuple(by for by in term.by if by not in common))
        for term in ordered
    ]


def _dropout(now: Program, was: Program) -> Iterator[Violation]:
    """Fewer or weaker dropouts; one that is moved into attention's own argument is no change."""
    rates, held = _rates(now), _rates(was)
    gone = Counter(rate for rate, _ in held) - Counter(rate for rate, _ in rates)
    fresh = [(rate, call) for rate, call in rates if rate not in {r for r, _ in held}]
    for rate in gone:
        if rate == "0.0":
            continue
        if fresh:
            certain = fresh[0][0] == "0.0" and _is_number(rate)
            what = f"Dropout is {fresh[0][0]} instead of {rate}"
            yield _breach(what[:120], fresh[0][1].place, certain=certain)
        elif not any(call.argument_node("dropout_p", 4) is not None for call in _attentions(now)):
            yield _breach(f"Dropout of {rate[:40]} is gone", _model_place(now), certain=False)
        return
    applied, applied_held = _n_applied(now), _n_applied(was)
    elsewhere = any(call.argument_node("dropout_p", 4) is not None for call in _attentions(now))
    elsewhere = elsewhere or len(list(now.named("dropout"))) > len(list(was.named("dropout")))
    if applied < applied_held and not elsewhere and any(rate != "0.0" for rate, _ in held):
        yield _breach("A dropout is no longer applied", _model_place(now), certain=False)


def _rates(program: Program) -> list[tuple[str, Call]]:
    found: list[tuple[str, Call]] = []
    for call in alive(program, *_DROPOUTS):
        if not call.callee.startswith("torch."):
            continue
        node = call.argument_node("p", _DROPOUTS[call.name])
        rate = "0.5" if node is None else program.spell(node, call.site.scope)
        switch = call.argument_node("training", 2) if call.name == "dropout" else None
        if switch is not None and program.spell(switch, call.site.scope) == "False":
            rate = "0.0"
        found.append(("0.0" if rate == "0" else rate, call))
    return found


def _n_applied(program: Program) -> int:
    """How many calls in modules apply a dropout that the module holds."""
    names = set(program.by_file(_held_dropouts))
    return sum(call.in_model for call in program.called(names))


def _held_dropouts(program: Program, module: Scope) -> Iterator[str]:
    for scope in program.module_scopes_of(module):
        for path, events in scope.events.items():
            if path.startswith("self.") and any(
                event.value is not None and "Dropout" in ast.dump(event.value) for event in events
            ):
                yield path.rpartition(".")[2]


def _attentions(program: Program) -> list[Call]:
    return alive(program, "scaled_dot_product_attention")


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _model_place(program: Program) -> Place | None:
    forwards = program.work.flow.forwards
    site = forwards[0] if forwards else None
    return site.scope.source.place(site.call) if site is not None else loop_place(program)


def _breach(what: str, place: Place | None, certain: bool) -> Violation:
    text = f"{what}; the contract holds the baseline's terms and regularisers."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
