"""How many optimizer steps a run takes: the loop's bound, or the test that breaks out of it."""

import ast

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.operators import binary
from infrarsi.reading.scopes import dotted
from infrarsi.reading.training import Loop, Training
from infrarsi.reading.values import Known, Unknown, Value
from infrarsi.reading.workload import StepWork, spelled, whole_number


def updates_fact(evaluator: Evaluator, work: StepWork) -> Value:
    """How many optimizer steps a whole run takes; of a bound `step > n` it is the `n`."""
    training = work.training
    if training is None or training.update is None:
        return Unknown("no loop around an optimizer step was found")
    passes = _all_passes(evaluator, training)
    if passes is None:
        guess = spelled(evaluator, "updates", sure=True)
        unclear = Unknown("how many passes is not written out")
        return guess if guess is not None and whole_number(guess) is not None else unclear
    if isinstance(work.accumulation, Unknown) and not training.inner:
        return work.accumulation
    counted = bool(training.conditions) or work.steps_inside
    if not counted or training.inner:
        updates = passes
    else:
        updates = binary(ast.FloorDiv(), passes, work.accumulation)
    if isinstance(updates, Known) and whole_number(updates) is None:
        return Unknown("its bound is no number of steps")
    return updates


def _all_passes(evaluator: Evaluator, training: Training) -> Value | None:
    """Passes through the updating loop, those of counting loops around it multiplied."""
    if training.update is None:
        return None
    passes = _passes(evaluator, training.update)
    if passes is None or _broken_at(training.update) is not None:
        return passes
    for loop in training.outer:
        around = _passes(evaluator, loop)
        if around is None:
            return Unknown("how often the loops around the step run is not written out")
        passes = binary(ast.Mult(), around, passes)
    return passes


def _passes(evaluator: Evaluator, loop: Loop) -> Value | None:
    """How often the loop runs, None where nothing in it says so."""
    bound = _broken_at(loop)
    frame = evaluator.frame(loop.scope)
    if bound is not None:
        return evaluator.named(bound, frame, "updates")
    return None if isinstance(loop.node, ast.While) else _range(evaluator, loop, loop.node.iter)


def _range(evaluator: Evaluator, loop: Loop, over: ast.expr) -> Value | None:
    frame = evaluator.frame(loop.scope)
    match over:
        case ast.Call(func=ast.Name(id="range"), args=[last]):
            return evaluator.named(last, frame, "updates")
        case ast.Call(func=ast.Name(id="range"), args=[first, last]):
            total = evaluator.named(last, frame, "updates")
            return binary(ast.Sub(), total, evaluator.value(first, frame))
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "tqdm" | "trange"), args=args):
            counts = [_range(evaluator, loop, argument) for argument in args]
            return next((count for count in counts if count is not None), None)
        case ast.Call(func=ast.Attribute(attr="islice"), args=[_, last]):
            return evaluator.named(last, frame, "updates")
        case _:
            return None


def _broken_at(loop: Loop) -> ast.expr | None:
    """The `n` of `while step < n` and of `if step == n: break` in the loop's body.

    A counting `for` is only cut short by a test of its own counter.
    """
    node = loop.node
    tests = [
        part
        for inner in node.body
        if isinstance(inner, ast.If) and any(isinstance(s, ast.Break) for s in inner.body)
        for part in _parts(_behind(loop, inner.test), ast.Or)
    ]
    tests = [*_parts(node.test, ast.And), *tests] if isinstance(node, ast.While) else tests
    counter = None if isinstance(node, ast.While) else node.target
    for test in tests:
        if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
            continue
        if counter is None and _counts_up(loop, test.left):
            return test.comparators[0]
        counts = counter is not None and dotted(test.left) == _counter(counter)
        if counts and isinstance(test.ops[0], ast.Eq | ast.GtE):
            return test.comparators[0]
    return None


def _parts(test: ast.expr, decisive: type[ast.boolop]) -> list[ast.expr]:
    """The tests each of which decides by itself; `x is not None and` in front is passed over."""
    if not isinstance(test, ast.BoolOp):
        return [test]
    if isinstance(test.op, decisive):
        return test.values
    rest = [value for value in test.values if not _is_set(value)]
    return rest if len(rest) == 1 else []


def _is_set(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case _:
            return False


def _counts_up(loop: Loop, left: ast.expr) -> bool:
    """Whether a name grows by one at a time: `step += 1`."""
    events = loop.scope.events.get(dotted(left) or "", [])
    return any(
        event.kind == "augment"
        and isinstance(event.operator, ast.Add)
        and isinstance(event.value, ast.Constant)
        and event.value.value == 1
        for event in events
    )


def _counter(target: ast.expr) -> str | None:
    """The counting name of `for step in`, or of `for step, batch in enumerate(...)`."""
    return dotted(target.elts[0]) if isinstance(target, ast.Tuple) else dotted(target)


def _behind(loop: Loop, test: ast.expr) -> ast.expr:
    """What a bare name stands for, where it is bound once."""
    events = loop.scope.events.get(test.id, []) if isinstance(test, ast.Name) else []
    only = events[0].value if len(events) == 1 and events[0].kind == "assign" else None
    return only if only is not None else test
