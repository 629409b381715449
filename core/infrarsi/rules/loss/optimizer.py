"""L210: the optimizer stays.

Another optimizer, other betas, epsilon, momentum or weight decay, or other groups of parameters
make other updates. How the same update is computed is free: `fused`, `foreach` and `capturable`
are allowed.

Mend it by restoring class and numbers.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.optimization import find_optimizers
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Made
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.loss.sides import loop_place, moved_fact, restoring, same_number, severity

CODE = "L210"
_FREE = {
    "fused",
    "foreach",
    "capturable",
    "differentiable",
    "lr",
    "params",
    "weight_decay",
    "betas",
}
_DEFAULTS: dict[str, dict[str, object]] = {
    "AdamW": {"eps": 1e-8, "amsgrad": False, "maximize": False},
    "Adam": {"eps": 1e-8, "amsgrad": False, "maximize": False, "decoupled_weight_decay": False},
    "SGD": {"momentum": 0, "dampening": 0, "nesterov": False, "maximize": False},
}
_SAME = {"FusedAdam": "AdamW"}


def find(change: Change) -> Iterator[Violation]:
    """An error for another class of torch or other known numbers; a warning for what may differ."""
    yield from _class(change)
    yield from _numbers(change)
    if change.sides is not None:
        yield from _arguments(*change.sides)
        yield from _groups(*change.sides)
        yield from _others(*change.sides)


def _class(change: Change) -> Iterator[Violation]:
    moved = moved_fact(change, "optimizer")
    fact, agreed = change.fact("optimizer"), change.agreed("optimizer")
    if moved is not None and _SAME.get(str(fact.value), fact.value) != agreed.value:
        text = f"The optimizer is {fact.value} instead of {agreed.value}; the contract holds "
        known = str(fact.value) in _DEFAULTS and str(agreed.value) in _DEFAULTS
        yield violation(
            CODE,
            f"{text}{agreed.value}.",
            severity="error" if known else "warning",
            place=fact.place or loop_place(change.now),
            contract_place=agreed.place,
        )
    elif fact.value is None and agreed.value is not None and change.sides is not None:
        text = f"Whether the optimizer still is {agreed.value} cannot be read: {fact.unknown}."
        yield violation(CODE, text, severity="warning", place=loop_place(change.now))


def _others(now: Program, was: Program) -> Iterator[Violation]:
    """Optimizers of a class that the baseline makes none of, wherever they are made."""
    made, held = (dict(program.by_file(_optimizers)) for program in (now, was))
    current = now.reading.fact("optimizer")
    for name in sorted(made.keys() - held.keys()):
        if held and name[:1].isupper() and (current is None or current.value != name):
            text = f"{name} is made, where the baseline makes {min(held)}; the contract holds that."
            yield _finding(text, made[name], certain=False)
            return


def _optimizers(program: Program, module: Scope) -> Iterator[tuple[str, Place]]:
    for call in program.calls_of(module):
        if call.callee.startswith("torch.optim.") and call.callee.count(".") == 2:
            yield call.name, call.place


def _numbers(change: Change) -> Iterator[Violation]:
    for name in ("weight_decay", "betas"):
        moved = moved_fact(change, name)
        if moved is None or (name == "weight_decay" and moved[0].value == 0):
            continue
        now, agreed = moved
        value = agreed.value
        yield violation(
            CODE,
            f"{name} is {now.value} instead of {value}; the contract holds {value}.",
            place=now.place or loop_place(change.now),
            contract_place=agreed.place,
            fixes=restoring(change, name, "Restore") if name != "betas" else (),
            severity=severity(agreed),
        )


def _made(program: Program) -> Made | None:
    made = find_optimizers(program.evaluator, program.work.training)
    return made[0] if len(made) == 1 else None


def _arguments(now: Program, was: Program) -> Iterator[Violation]:
    made, before = _made(now), _made(was)
    if made is None or before is None:
        return
    name, held_name = (m.callee.rpartition(".")[2] for m in (made, before))
    if name != held_name:
        return
    given, held = _given(now, made), _given(was, before)
    defaults = _DEFAULTS.get(name, {})
    for argument in sorted(given.keys() | held.keys()):
        if argument in _FREE:
            continue
        value = given.get(argument, defaults.get(argument))
        agreed = held.get(argument, defaults.get(argument))
        if not same_number(value, agreed):
            text = (
                f"{name} has {argument}={value} instead of {agreed}; the contract holds {agreed}."
            )
            certain = _is_plain(value) and _is_plain(agreed)
            place = made.frame.scope.source.place(made.call)
            yield _finding(text, place, certain)


def _given(program: Program, made: Made) -> dict[str, object]:
    found: dict[str, object] = {}
    for keyword in made.call.keywords:
        if keyword.arg is not None:
            text = program.spell(keyword.value, made.frame.scope)
            found[keyword.arg] = _literal(text)
    return found


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | float | bool | tuple)


def _groups(now: Program, was: Program) -> Iterator[Violation]:
    """Per-group numbers: the same settings for the same number of groups."""
    made, before = _made(now), _made(was)
    if made is None or before is None or not (made.call.args and before.call.args):
        return
    groups = _settings(now, made)
    held = _settings(was, before)
    if groups != held:
        place = made.frame.scope.source.place(made.call.args[0])
        text = "The optimizer's parameter groups differ; the contract holds the baseline's."
        yield _finding(text, place, certain=False)


def _settings(program: Program, made: Made) -> list[dict[str, object]]:
    written = program.write_out(made.call.args[0], made.frame.scope)
    found: list[dict[str, object]] = []
    for node in walk(written):
        if isinstance(node, ast.Dict):
            fields = {
                key.value: _literal(unparse(value))
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and key.value != "params"
            }
            found.append({str(name): value for name, value in fields.items()})
    return found


def _finding(text: str, place: Place, certain: bool) -> Violation:
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
