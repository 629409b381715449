"""Which names in the training loop change from step to step."""

import ast

from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope, dotted
from infrarsi.reading.walking import walk
from infrarsi.rules.remembered import remembered


@remembered
def step_counters(program: Program) -> frozenset[str]:
    """The update loop's counter and the names computed from it in the loop's function."""
    training = program.work.training if program.is_followed else None
    if training is None or training.update is None:
        return frozenset()
    loop = training.update
    names = _loop_names(loop.node) | _counted(loop.scope, loop.node)
    for _ in range(4):
        more = {
            name
            for name, events in loop.scope.events.items()
            for event in events
            if event.in_loop and event.value is not None and _reads(event.value, names)
        }
        if more <= names:
            break
        names |= more
    return frozenset(names)


def depends_on_step(program: Program, node: ast.AST, but: frozenset[str] = frozenset()) -> bool:
    """Whether an expression reads a name, other than some, that changes from step to step."""
    return _reads(node, step_counters(program) - but)


def _loop_names(loop: ast.AST) -> set[str]:
    match loop:
        case ast.For(target=ast.Name(id=name), iter=source) if _counts(source):
            return {name}
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), *_]), iter=source) if _counts(
            source
        ):
            return {name}
        case _:
            return set()


def _counts(source: ast.expr) -> bool:
    """Whether a loop runs over numbers: `range(n)`, `enumerate(rows)`, `tqdm(range(n))`."""
    match source:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            is_counter = name in {"range", "enumerate", "count", "trange"}
            return is_counter or any(_counts(argument) for argument in args[:1])
        case _:
            return False


def _counted(scope: Scope, loop: ast.AST) -> set[str]:
    """Names that the loop itself counts up: `step += 1`."""
    inner = set(walk(loop))
    return {
        name
        for name, events in scope.events.items()
        for event in events
        if event.kind == "augment"
        and event.node in inner
        and isinstance(event.value, ast.Constant)
        and event.value.value == 1
    }


def _reads(node: ast.AST, names: frozenset[str] | set[str]) -> bool:
    return any(
        (isinstance(inner, ast.Name) and inner.id in names)
        or (isinstance(inner, ast.Attribute) and dotted(inner) in names)
        for inner in walk(node)
    )
