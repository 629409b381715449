"""S404: what is printed follows from the training, not from a recording.

A loss that comes from a formula, a table or a constant looks like training and is none. Each
printed loss is followed back to the model's output; where the baseline's came from there and the
present one does not, that is said. Reading the loss later or less often is fine.

Mend it by printing the loss that was computed.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from infrarsi.contract import Severity, Violation
from infrarsi.reading import Call, Program
from infrarsi.reading.attached import attached
from infrarsi.reading.parts import parts_of
from infrarsi.reading.scopes import Scope, parameters
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh, pieces
from infrarsi.rules.regions import nodes_in, step_regions
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import differing, new_calls, one_a_line, shown, warned

CODE = "S404"
_PRINTS = {
    *("print", "info", "write", "log", "add_scalar", "log_metrics", "debug", "set_postfix"),
    *("warning", "update", "append", "writerow", "dump", "dumps", "set_description"),
}
_STREAMS = ("contextlib.redirect_stdout", "contextlib.redirect_stderr")
_STARTS = {"zeros", "zeros_like", "tensor", "new_zeros", "empty", "float", "list", "dict", "deque"}
Move = tuple[set[str], ast.AST, set[str]]
_ADDS = {"append", "add_", "extend", "update", "copy_", "fill_"}
_LABEL = re.compile(r"loss[\W_]*(%[-\w.]+\W*)?$", re.IGNORECASE)
_HELD = "the contract holds that what is printed follows from the training"


def find(change: Change) -> Iterator[Violation]:
    """An error for a literal, a warning for what the model plays no part in."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for call in new_calls(now, was, _STREAMS):
        yield warned(
            CODE, f"`{shown(call.signature)}` redirects what is printed; {_HELD}.", call.place
        )
    held = _losses(was)
    if not differing(now, was) or not any(is_computed(was, piece.node) for piece in held):
        return
    computed = any(is_computed(now, piece.node) for piece in _losses(now))
    for piece in fresh(_losses(now), held):
        if not is_computed(now, piece.node):
            certain = isinstance(piece.node, ast.Constant) and not computed
            yield _found(piece, "error" if certain else "warning")
    names = {name for piece in _losses(now) for name in _read(piece.node)}
    for piece in fresh(_set_in_step(now, names), _set_in_step(was, names)):
        if not is_computed(now, piece.node) and not _is_start(piece.node):
            yield _found(piece, "warning")


def _found(piece: Fragment, severity: Severity) -> Violation:
    return warned(
        CODE,
        f"`{shown(piece.written)}` is given out as the loss and does not come from the model; "
        f"{_HELD}.",
        piece.place,
        severity,
    )


@remembered
def _losses(program: Program) -> list[Fragment]:
    """What is given out under the name of a loss."""
    found: list[Fragment] = []
    for call in program.called(_PRINTS):
        if not call.is_dead:
            found += [Fragment(program, call.site.scope, node) for node in _labelled(call)]
    return found


def _labelled(call: Call) -> Iterator[ast.expr]:
    """The values in a call that a text, a key or a keyword calls a loss."""
    for node in walk(call.site.call):
        match node:
            case ast.JoinedStr(values=parts):
                yield from _fields(parts)
            case ast.Dict(keys=keys, values=values):
                yield from (v for k, v in zip(keys, values, strict=True) if _says_loss(k))
            case ast.keyword(arg=str() as name, value=value) if _LABEL.search(name):
                yield value
            case ast.BinOp(left=text, op=ast.Mod(), right=right) if _mentions_loss(text):
                yield right
            case ast.Call(func=ast.Attribute(attr="format", value=text)) if _mentions_loss(text):
                yield from node.args
            case _:
                pass
    yield from _beside(call)


def _fields(parts: list[ast.expr]) -> Iterator[ast.expr]:
    """The fields of a formatted text that come right after the word."""
    for label, part in pairwise(parts):
        if isinstance(part, ast.FormattedValue) and _says_loss(label):
            yield part.value


def _mentions_loss(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and "loss" in str(node.value).lower()


def _says_loss(node: ast.expr | None) -> bool:
    """Whether the word just before a value is the loss: `"loss: "`, `"train_loss"`."""
    return isinstance(node, ast.Constant) and _LABEL.search(str(node.value)) is not None


def _beside(call: Call) -> Iterator[ast.expr]:
    """`print("loss", value)` and `add_scalar("loss", value)`."""
    given = call.site.call.args
    if given and _mentions_loss(given[0]) and "%" in unparse(given[0]):
        yield from given[1:]
        return
    for label, value in pairwise(given):
        if _says_loss(label):
            yield value


def _set_in_step(program: Program, names: set[str]) -> list[Fragment]:
    """Values that a step assigns to a name that is given out as the loss."""
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    found = pieces(program, step_regions(program), lambda n: bool(_written(n) & names), *kinds)
    return [
        Fragment(program, piece.scope, value)
        for piece in found
        if (value := getattr(piece.node, "value", None)) is not None
    ]


def _is_start(node: ast.AST) -> bool:
    """A value a sum begins with."""
    match node:
        case ast.Constant() | ast.List() | ast.Dict() | ast.Tuple():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _STARTS
        case _:
            return False


def is_computed(program: Program, node: ast.AST) -> bool:
    """Whether an expression reads something that comes from the model's output."""
    known = _tainted(program)
    if any(name in known for name in _read(node)):
        return True
    sources = _origins(program)
    return any(inner in sources for inner in walk(node))


@remembered
def _origins(program: Program) -> frozenset[ast.AST]:
    flow = program.work.flow
    known = {site.call for site in (*flow.losses, *flow.forwards)}
    return frozenset(known | {call.site.call for call in program.calls if _is_loss(call)})


def _is_loss(call: Call) -> bool:
    """Whether a call is one of a loss that is no function of the workspace with that name."""
    name = call.name.lower()
    if not any(word in name for word in ("cross_entropy", "criterion", "loss")):
        return False
    return call.callee.startswith("torch.") or call.name not in _functions(call.program)


@remembered
def _functions(program: Program) -> frozenset[str]:
    return frozenset(scope.name for scope in program.project.scopes.values() if scope.name)


@remembered
def _tainted(program: Program) -> frozenset[str]:
    """Names that hold, or give back, something that comes from the model's output."""
    around = _around_origins(program)
    moves = [(targets, node in around, reads) for targets, node, reads in _moves(program)]
    known: set[str] = set()
    for _ in range(8):
        fresh_names = {
            name
            for targets, holds, reads in moves
            if (holds or not reads.isdisjoint(known)) and not targets <= known
            for name in targets
        }
        if fresh_names <= known:
            break
        known |= fresh_names
    return frozenset(known - {"self", "model", "args", "cfg", "config", "torch"})


def _around_origins(program: Program) -> set[ast.AST]:
    """What the model's output is called for in: the calls and all that stands around them."""
    found: set[ast.AST] = set()
    for scope in program.project.modules.values():
        for node in _origins(program):
            if node in scope.source.parents:
                found |= {node, *scope.source.ancestors(node)}
    return found


def _moves(program: Program) -> Iterator[Move]:
    """(names written, what they are written from, names read there), over all files."""
    for module in program.project.modules.values():
        yield from _moves_in(module)
    functions = _parameters(program)
    for call in program.calls:
        if call.name in functions or call.name in _ADDS:
            yield from _moved_by(call, functions)


@attached
def _moves_in(module: Scope) -> tuple[Move, ...]:
    return tuple(_moves_of(module))


def _moves_of(module: Scope) -> Iterator[Move]:
    for kind in (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For):
        for _, node in nodes_in(((module, module.node),), kind):
            move = _move(node)
            if move is not None:
                yield move
    for scope in parts_of(module).scopes.values():
        for event in scope.returns:
            if event.value is not None and scope.name:
                yield {scope.name}, event.value, set(_read(event.value))


@attached
def _move(node: ast.AST) -> Move | None:
    value = getattr(node, "value", None) or getattr(node, "iter", None)
    return (_written(node), value, set(_read(value))) if value is not None else None


def _moved_by(call: Call, functions: dict[str, list[str]]) -> Iterator[Move]:
    """What a call hands to the parameters of a function, and what it adds to an object."""
    names = functions.get(call.name, [])
    for name, argument in zip(names, call.site.call.args, strict=False):
        yield {name}, argument, set(_read(argument))
    for keyword in call.site.call.keywords if names else ():
        if keyword.arg is not None:
            yield {keyword.arg}, keyword.value, set(_read(keyword.value))
    func = call.site.call.func
    if call.name in _ADDS and isinstance(func, ast.Attribute):
        given = {name for argument in call.site.call.args for name in _read(argument)}
        yield set(_read(func.value)), call.site.call, given


@remembered
def _parameters(program: Program) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scope in program.project.scopes.values():
        if scope.name and not isinstance(scope.node, ast.Module | ast.ClassDef):
            names = [name for name, _ in parameters(scope.node)]
            found[scope.name] = names[1:] if names[:1] == ["self"] else names
    return found


def _written(node: ast.AST) -> set[str]:
    targets = list(getattr(node, "targets", ())) or [getattr(node, "target", None)]
    return {
        inner.id if isinstance(inner, ast.Name) else inner.attr
        for target in targets
        if target is not None
        for inner in walk(target)
        if isinstance(inner, ast.Name | ast.Attribute)
    } - {"self"}


def _read(node: ast.AST) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
