"""Facts on how weights are updated: optimizer, its numbers, clipping, seed."""

import ast
from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.fetching import argument_named
from infrarsi.reading.roles import CLIP_CALLS
from infrarsi.reading.scopes import guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.training import Training
from infrarsi.reading.values import Known, Made, Many, Record, Symbol, Unknown, Value
from infrarsi.reading.workload import spelled

_OPTIMIZERS = {
    "AdamW",
    "Adam",
    "SGD",
    "Adafactor",
    "Adagrad",
    "RMSprop",
    "NAdam",
    "RAdam",
    "Adamax",
    "LBFGS",
    "Lion",
    "Muon",
    "FusedAdam",
}
_CLIPS = CLIP_CALLS | {"clip_grads_with_norm_"}
_IN_PLACE = {"mul_", "div_", "clamp_", "_foreach_mul_", "_foreach_div_"}
_NORMS = {"get_total_norm", "norm", "vector_norm", "_foreach_norm"}
_DEFAULTS: dict[str, dict[str, float | str]] = {
    "AdamW": {"lr": 1e-3, "weight_decay": 1e-2, "betas": "(0.9, 0.999)"},
    "Adam": {"lr": 1e-3, "weight_decay": 0.0, "betas": "(0.9, 0.999)"},
    "SGD": {"lr": 1e-3, "weight_decay": 0.0},
}
"""torch's own defaults, from the signatures in `torch.optim`."""


def find_optimizers(evaluator: Evaluator, training: Training | None) -> tuple[Made, ...]:
    """How the stepped optimizer is made; all that are made where that cannot be followed."""
    for site in training.steps if training is not None else ():
        frame = evaluator.frame(site.scope)
        receiver = site.call.func
        candidates = [receiver.value] if isinstance(receiver, ast.Attribute) else []
        for expression in [*candidates, *site.call.args]:
            value = evaluator.value(expression, frame)
            if isinstance(value, Made) and _is_optimizer(value.callee):
                return (value,)
    made: list[Made] = []
    for site in evaluator.project.calls:
        if not site.name[:1].isupper():
            continue
        callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
        if isinstance(callee, Symbol) and _is_optimizer(callee.name):
            made.append(Made(callee.name, site.call, evaluator.frame(site.scope)))
    return tuple(made)


def optimizer_facts(
    evaluator: Evaluator, optimizers: tuple[Made, ...]
) -> Iterator[tuple[str, Value]]:
    """`optimizer`, `lr`, `weight_decay` and `betas`."""
    made = optimizers[0] if len(optimizers) == 1 else None
    if made is None:
        reason = "no optimizer is made in plain sight"
        if optimizers:
            reason = f"{len(optimizers)} optimizers are made"
        yield "optimizer", Unknown(reason)
        for name in ("lr", "weight_decay"):
            guess = spelled(evaluator, name, sure=True)
            yield name, guess if guess is not None else Unknown(reason)
        return
    name = made.callee.rpartition(".")[2]
    place = made.frame.scope.source.place(made.call)
    yield "optimizer", Known(name, (), place)
    for argument, position in (("lr", 1), ("weight_decay", None), ("betas", None)):
        default = _DEFAULTS.get(name, {}).get(argument)
        given = argument_named(made.call, argument, position)
        if given is not None:
            value = _plain(evaluator.named(given, made.frame, argument))
            if isinstance(value, Known) and value.place is None:
                value = Known(value.value, value.origins, made.frame.scope.source.place(given))
            yield argument, value
        elif (grouped := _in_groups(evaluator, made, argument)) is not None:
            yield argument, grouped
        elif any(keyword.arg is None for keyword in made.call.keywords):
            yield argument, Unknown("the optimizer's arguments are unpacked from a dictionary")
        elif default is not None:
            yield argument, Known(default, (), place)


def clip_fact(evaluator: Evaluator, training: Training | None) -> Value:
    """The norm gradients are clipped to; `none` where they are not."""
    if training is None or training.update is None:
        clips = any(site.name in _CLIPS for site in evaluator.project.calls)
        named = spelled(evaluator, "clip", sure=True) if clips else None
        return named or Unknown("no optimizer step was found")
    for site in training.calls:
        if site.name not in _CLIPS:
            continue
        frame = evaluator.frame(site.scope)
        if evaluator.hold(guards_around(site.scope, site.call), frame) is False:
            continue
        wrapped = site.name == "clip_gradients"
        for name, position in (("max_norm", 1), ("clip_val", None), ("clip_value", 1)):
            position = None if wrapped else position
            norm = argument_named(site.call, name, position)
            if norm is not None:
                return evaluator.named(norm, frame, name)
        return Unknown("the norm of the clipping call is not written in plain sight")
    if _scales_gradients(training):
        return Unknown("gradients are limited by hand")
    return Known("none")


def seed_fact(evaluator: Evaluator) -> Value:
    """The seed torch is given, seen from rank 0."""
    for name in ("manual_seed", "seed_everything", "set_seed", "seed_all"):
        for site in evaluator.project.calls_by_name.get(name, []):
            callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
            generator = not isinstance(callee, Symbol) and name == "manual_seed"
            device = isinstance(callee, Symbol) and ".cuda." in callee.name
            if site.call.args and not generator and not device:
                return evaluator.named(site.call.args[0], evaluator.frame(site.scope), "seed")
    return Unknown("the script sets no seed for torch")


def _scales_gradients(training: Training) -> bool:
    """Whether a step clamps gradients in place, or takes their norm and multiplies them."""
    changed = {
        site.name
        for site in training.calls
        if site.name in _IN_PLACE and "grad" in unparse(site.call)
    }
    measured = any(site.name in _NORMS for site in training.calls)
    return any("clamp" in name or measured for name in changed)


def _is_optimizer(callee: str) -> bool:
    library, _, name = callee.rpartition(".")
    if "lr_scheduler" in library:
        return False
    return name in _OPTIMIZERS or (library == "torch.optim" and name[:1].isupper())


def _plain(value: Value) -> Value:
    """A pair of numbers as text; a single value as it is."""
    if not isinstance(value, Many):
        return value
    numbers = [item.value for item in value.items if isinstance(item, Known)]
    if len(numbers) != len(value.items):
        return Unknown("one of its numbers is not known")
    origins = tuple(o for item in value.items if isinstance(item, Known) for o in item.origins)
    return Known(f"({', '.join(str(number) for number in numbers)})", origins)


def _in_groups(evaluator: Evaluator, made: Made, argument: str) -> Value | None:
    """The largest value the parameter groups give, where they are written out."""
    if not made.call.args:
        return None
    groups = evaluator.value(made.call.args[0], made.frame)
    items = groups.items if isinstance(groups, Many) else ()
    values = [_fields(item).get(argument) for item in items]
    numbers = [
        value
        for value in values
        if isinstance(value, Known) and isinstance(value.value, int | float)
    ]
    if not numbers:
        return None
    return max(numbers, key=lambda known: float(known.value or 0))


def _fields(value: Value) -> dict[str, Value]:
    return dict(value.fields) if isinstance(value, Record) else {}
