"""What the rules on loss and optimisation ask of both sides of a change."""

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

from infrarsi.contract import Fact, Fix
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.objective import Objective
from infrarsi.reading.scopes import Scope
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change

Node = tuple[Scope, ast.AST]


def objectives(change: Change) -> tuple[Objective, Objective] | None:
    """(now, was) where both sides' backward calls are followed to a loss."""
    if change.sides is None:
        return None
    now, was = change.sides
    if now.objective is None or was.objective is None:
        return None
    return now.objective, was.objective


def moved_fact(change: Change, name: str) -> tuple[Fact, Fact] | None:
    """(now, agreed) where both are known and differ."""
    now, agreed = change.fact(name), change.agreed(name)
    if now.value is None or agreed.value is None or not change.is_written(name):
        return None
    return None if same_number(now.value, agreed.value) else (now, agreed)


def severity(agreed: Fact) -> Literal["error", "warning"]:
    """How sure a difference from an agreed fact is: what the user said is no reading."""
    return "warning" if agreed.given else "error"


def restoring(change: Change, name: str, title: str) -> tuple[Fix, ...]:
    """A fix that writes the agreed value back, where a literal of its own sets the fact."""
    value = change.agreed(name).value
    fix = change.set_value(name, value, f"{title} {value}") if value is not None else None
    return (fix,) if fix is not None else ()


def same_number(a: object, b: object) -> bool:
    """Whether two values are equal, numbers up to rounding."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9)
    return a == b


def new_nodes(
    now: Program, was: Program, key: Callable[[Scope, ast.AST, Program], str | None]
) -> Iterator[Node]:
    """Nodes of a step that the other side's steps do not have; None as a key leaves one out."""
    left = Counter(key(scope, node, was) for scope, node in was.step_nodes)
    for scope, node in now.step_nodes:
        text = key(scope, node, now)
        if text is None:
            continue
        if left[text] > 0:
            left[text] -= 1
        else:
            yield scope, node


def alive(program: Program, *names: str) -> list[Call]:
    """The calls of these names that may run."""
    return list(program.named(*names))


def has_update(program: Program) -> bool:
    """Whether the loop that updates the weights was found; else what a step does is not known."""
    training = program.work.training if program.is_followed else None
    return training is not None and training.update is not None


def loop_place(program: Program) -> Place | None:
    """Where a step updates the weights; else where it goes backward."""
    training = program.work.training
    if training is None:
        return None
    site = training.steps[0] if training.steps else training.backward
    return site.scope.source.place(site.call)


def has_name(node: ast.AST, *names: str) -> bool:
    """Whether a written expression calls or reads one of these as its last name."""
    for inner in walk(node):
        if isinstance(inner, ast.Name) and inner.id.rpartition(".")[2] in names:
            return True
        if isinstance(inner, ast.Attribute) and inner.attr in names:
            return True
    return False
