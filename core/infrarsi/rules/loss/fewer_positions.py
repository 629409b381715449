"""L204: every position counts in the loss.

Taking the loss over every second position, over the hardest few or over half a row saves the
head's work and throws gradients away. Slices and masks on the way into the loss are compared;
chunks that cover all positions are fine.

Mend it by handing all positions to the loss.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.objective import Objective, loss_call
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.loss.sides import new_nodes, objectives

CODE = "L204"
_CHOOSERS = {"topk", "kthvalue", "quantile", "sort", "argsort", "index_select", "masked_select"}
_IGNORED = -100


def find(change: Change) -> Iterator[Violation]:
    """An error for slices that drop positions, a warning for selections that may."""
    both = objectives(change)
    if both is not None:
        yield from _on_the_way(*both)
    if change.sides is not None:
        now, was = change.sides
        for scope, node in new_nodes(now, was, _ignores):
            yield _breach(
                "Targets are overwritten with the ignored label", scope.source.place(node)
            )


def _on_the_way(now: Objective, was: Objective) -> Iterator[Violation]:
    place = now.main.place or now.place
    cuts = Counter(_cuts(was))
    for text, drops in _cuts(now):
        if cuts[(text, drops)] > 0:
            cuts[(text, drops)] -= 1
        elif drops:
            certain = (text, True) in set(_cuts(now, beside_logits=True))
            what = f"Only the positions [{text}] reach the loss"
            yield _breach(what, place, "error" if certain else "warning")
            return
    chosen = _choosers(now) - _choosers(was)
    if chosen:
        yield _breach(f"`{min(chosen)}` picks which positions count in the loss", place)
        return
    if _masks(now) > _masks(was):
        yield _breach("Some positions may be masked out of the loss", place, "warning")


def _cuts(objective: Objective, *, beside_logits: bool = False) -> Iterator[tuple[str, bool]]:
    """Slices on the way into the loss, and whether they surely drop positions.

    A slice of the logits alone may leave out padded columns of the vocabulary.
    """
    core = objective.main.core
    call = loss_call(core)
    logits = set(walk(call.args[0])) if call is not None and call.args else set()
    for node in walk(core):
        if not isinstance(node, ast.Subscript) or (beside_logits and node in logits):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        slices = [part for part in parts if isinstance(part, ast.Slice)]
        if slices:
            yield unparse(node.slice), any(_drops(part) for part in slices)


def _drops(part: ast.Slice) -> bool:
    step, lower, upper = part.step, part.lower, part.upper
    if isinstance(step, ast.Constant) and step.value not in (None, 1):
        return True
    if step is not None and not isinstance(step, ast.Constant):
        return True
    if _divides(lower) or _divides(upper):
        return True
    first, last = _constant(lower), _constant(upper)
    only = lower is None or upper is None
    return only and (first not in (None, 0, 1) or last not in (None, -1))


def _divides(bound: ast.expr | None) -> bool:
    return isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Div | ast.FloorDiv)


def _constant(bound: ast.expr | None) -> object:
    match bound:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.Constant(value=value):
            return value
        case _:
            return None


def _choosers(objective: Objective) -> set[str]:
    names = (
        node.attr if isinstance(node, ast.Attribute) else node.id.rpartition(".")[2]
        for node in walk(objective.main.core)
        if isinstance(node, ast.Attribute | ast.Name)
    )
    return {name for name in names if name in _CHOOSERS}


def _masks(objective: Objective) -> int:
    count = 0
    for node in walk(objective.main.core):
        if isinstance(node, ast.Subscript):
            count += any(isinstance(inner, ast.Compare) for inner in walk(node.slice))
        elif isinstance(node, ast.keyword):
            count += node.arg == "ignore_index"
        elif isinstance(node, ast.UnaryOp | ast.Constant):
            count += _constant(node) == _IGNORED
    return count


def _ignores(scope: Scope, node: ast.AST, program: Program) -> str | None:
    """`targets[...] = -100`, spelled."""
    match node:
        case ast.Assign(targets=[ast.Subscript()], value=value):
            if _constant(value) == _IGNORED:
                return unparse(node)
        case ast.Call(func=ast.Attribute(attr="masked_fill" | "masked_fill_"), args=[_, value]):
            if _constant(value) == _IGNORED:
                return unparse(node)
        case _:
            pass
    return None


def _breach(what: str, place: Place, severity: str = "error") -> Violation:
    text = f"{what}; the contract holds that every position counts as in the baseline."
    return violation(
        CODE, text, severity="error" if severity == "error" else "warning", place=place
    )
