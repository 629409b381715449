"""S414: code does not single out the sizes, seeds or steps it is measured on.

A branch that is taken just for the contract's batch shape or seed, or from some step on, gives
results nobody else would get. New comparisons of a shape, a length or a seed with a number the
contract holds, and of the step's number with a literal, are looked for. Conditions that only log
or time are not meant, nor is a cadence such as `step % n == 0`.

Mend it by doing the same whatever the sizes, seeds and steps.
"""

import ast
import re
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    decides,
    new_calls,
    one_a_line,
    shown,
    warned,
)
from infrarsi.rules.workload.counters import step_counters

CODE = "S414"
_STEP = re.compile(
    r"(^|_)(step|steps|iter|iteration|iterations|it|update|updates|epoch|i_step|n_steps|idx_step|"
    r"n_calls|calls|count|counter|ticks?)(_num|_idx|_no|$)"
)
_SIZED = re.compile(
    r"\bshape\b|\bsize\(|\blen\(|\bnumel\(|seed|\bbatch\b|\brows\b|\bseq|hash|checksum|sum\(",
    re.IGNORECASE,
)
_NUMBERS = (
    *(
        "micro_batch",
        "accumulation",
        "global_batch",
        "seq_len",
        "seed",
        "updates",
        "tokens_per_step",
    ),
)
_SEEDS = ("torch.initial_seed", "torch.random.initial_seed", "torch.cuda.initial_seed")
_HELD = "the contract holds that no size, seed or step is singled out"


def find(change: Change) -> Iterator[Violation]:
    """A warning for each new branch on a number that the contract holds or on the step."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    held = _held_numbers(change)
    for piece in fresh(_comparisons(now, was), _comparisons(was, now)):
        if _singles_out(piece, held) and decides(piece):
            yield _found(f"`{shown(piece.written)}` singles out a number of the contract", piece)
        elif _singles_step(piece) and decides(piece):
            yield _found(f"`{shown(piece.written)}` does otherwise in some steps", piece)
    for piece in fresh(_tables(now, was), _tables(was, now)):
        if _is_keyed(piece.node, held):
            yield _found(f"`{shown(piece.written)}` knows a number of the contract", piece)
    for call in new_calls(now, was, _SEEDS):
        at = Fragment(now, call.site.scope, call.site.call)
        yield _found(f"`{shown(call.signature)}` asks which seed is measured", at)


@remembered
def _tables(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _has_keys, ast.Dict, ast.MatchSequence)


def _has_keys(node: ast.AST) -> bool:
    return isinstance(node, ast.MatchSequence) or (isinstance(node, ast.Dict) and bool(node.keys))


def _is_keyed(node: ast.AST, held: frozenset[int]) -> bool:
    """Whether a table's keys, or a pattern, are a shape or the seed that the contract holds."""
    if isinstance(node, ast.MatchSequence):
        values = [p.value for p in node.patterns if isinstance(p, ast.MatchValue)]
        return any(number in held for value in values for number in _literals(value))
    keys = node.keys if isinstance(node, ast.Dict) else []
    several = [set(_literals(key)) for key in keys if isinstance(key, ast.Tuple)]
    large = [set(_literals(key)) for key in keys if isinstance(key, ast.Constant)]
    return any(len(numbers & held) > 1 for numbers in several) or any(
        max(numbers & held, default=0) > 256 for numbers in large
    )


def _held_numbers(change: Change) -> frozenset[int]:
    values = {change.agreed(name).value for name in _NUMBERS}
    return frozenset(v for v in values if type(v) is int and v > 1)


@remembered
def _comparisons(program: Program, other: Program) -> list[Fragment]:
    return [
        piece
        for piece in all_pieces(program, other, lambda _: True, ast.Compare)
        if not isinstance(piece.scope.source.statement(piece.node), ast.Assert)
    ]


def _singles_out(piece: Fragment, held: frozenset[int]) -> bool:
    node = piece.node
    assert isinstance(node, ast.Compare)
    if not isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
        return False
    sides = [node.left, *node.comparators]
    numbers = {value for side in sides for value in _literals(side)}
    measured = [text for side in sides if not list(_literals(side)) for text in _said(piece, side)]
    return bool(numbers & held) and any(_SIZED.search(text) for text in measured)


def _said(piece: Fragment, side: ast.expr) -> Iterator[str]:
    """A side as it is written, and what the names in it are bound to."""
    yield unparse(side)
    for node in walk(side):
        events = [
            event
            for scope in piece.scope.around()
            for event in (scope.events.get(node.id, ()) if isinstance(node, ast.Name) else ())
        ]
        yield from (unparse(event.value) for event in events if event.value is not None)


def _literals(node: ast.expr) -> Iterator[int]:
    """Whole numbers of a literal, alone or in a tuple."""
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() as number):
            yield number
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            for element in elements:
                yield from _literals(element)
        case ast.Call(func=ast.Attribute(attr="Size"), args=[inner]):
            yield from _literals(inner)
        case _:
            return


def _singles_step(piece: Fragment) -> bool:
    node = piece.node
    assert isinstance(node, ast.Compare)
    sides = [node.left, *node.comparators]
    numbers = [number for side in sides for number in _literals(side)]
    if not numbers or (len(numbers) == 1 and numbers[0] in {0, 1, -1}):
        return False
    is_cadence = any(
        isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod)
        for side in sides
        for inner in walk(side)
    ) and isinstance(node.ops[0], ast.Eq)
    return not is_cadence and any(_counts(piece, side) for side in sides)


def _counts(piece: Fragment, side: ast.expr) -> bool:
    counters = step_counters(piece.program) if piece.program.is_followed else frozenset[str]()
    names = {
        inner.id if isinstance(inner, ast.Name) else inner.attr
        for inner in walk(side)
        if isinstance(inner, ast.Name | ast.Attribute)
    }
    return bool(names & counters) or any(_STEP.search(name.lower()) for name in names)


def _found(what: str, piece: Fragment) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", piece.place)
