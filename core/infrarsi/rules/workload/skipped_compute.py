"""W105: all of the model is computed in training.

Leaving out layers, experts or tokens, now and then or only in training, makes steps cheaper and
trains less. In the forward passes these are looked for where the baseline has none: conditions
and early returns, comparisons that select rows, parts taken of activations, layers skipped in a
loop, random draws, and modules that are called no more. Recomputing activations is allowed.

Mend it by computing what the baseline computes.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh, pieces
from infrarsi.rules.regions import calls_in, forward_regions, nodes_in
from infrarsi.rules.remembered import remembered
from infrarsi.rules.workload.cuts import partial_axis

CODE = "W105"
_MODES = ("training", "is_grad_enabled", "requires_grad")
_PARTS = {"narrow", "masked_select", "index_select", "topk", "randperm", "multinomial"}
_DRAWS = {"rand", "rand_like", "bernoulli", "bernoulli_", "random", "randint", "uniform_", "choice"}
_TABLES = ("cos", "sin", "freq", "pos", "mask", "causal", "rope", "table", "bias", "cache")
_TAKE = "computes a part only"


def find(change: Change) -> Iterator[Violation]:
    """An error for layers that are surely skipped in training, a warning for what may be."""
    if change.sides is None:
        return
    now, was = change.sides
    if not forward_regions(was):
        return
    yield from _loops(now, was)
    yield from _branches(now, was)
    yield from _selections(now, was)
    yield from _calls(now, was)
    yield from _unused(now, was)


def _loops(now: Program, was: Program) -> Iterator[Violation]:
    """Loops over layers that leave some out: `self.blocks[::2]`."""
    for piece in fresh(_layer_slices(now), _layer_slices(was)):
        yield _found(f"runs over `{piece.text}`, not over all layers", piece, "error")


@remembered
def _layer_slices(program: Program) -> list[Fragment]:
    loops = pieces(program, forward_regions(program), lambda _: True, ast.For)
    return [
        Fragment(program, loop.scope, inner)
        for loop in loops
        if isinstance(loop.node, ast.For)
        for inner in walk(loop.node.iter)
        if isinstance(inner, ast.Subscript)
        and isinstance(inner.slice, ast.Slice)
        and "self" in unparse(inner.value)
    ]


def _branches(now: Program, was: Program) -> Iterator[Violation]:
    for test in fresh(_tests(now), _tests(was)):
        branch = test.scope.source.parents.get(test.node)
        if branch is None or _is_harmless(branch, test):
            continue
        leaves = isinstance(branch, ast.If) and _leaves(branch.body)
        certain = leaves and any(mode in test.text for mode in _MODES)
        severity: Severity = "error" if certain and not _computes(branch) else "warning"
        yield _found(f"depends on `{test.text[:70]}`", test, severity)


@remembered
def _tests(program: Program) -> list[Fragment]:
    """Undecided conditions in the forward passes."""
    found: list[Fragment] = []
    branches = pieces(program, forward_regions(program), lambda _: True, ast.If, ast.IfExp)
    for piece in branches:
        assert isinstance(piece.node, ast.If | ast.IfExp)
        found.append(Fragment(program, piece.scope, piece.node.test))
    return found


def _is_harmless(branch: ast.AST, test: Fragment) -> bool:
    """Choices between two ways to compute, tests for nothing to do, checks that raise."""
    text = test.text
    if isinstance(branch, ast.IfExp):
        if "checkpoint" in unparse(branch):
            return True
        plain = isinstance(branch.body, ast.Constant) or isinstance(branch.orelse, ast.Constant)
        return plain or not any(mode in text for mode in _MODES)
    if not isinstance(branch, ast.If):
        return True
    body = " ".join(unparse(statement) for statement in branch.body)
    if "checkpoint" in text or "checkpoint" in body or body.startswith("raise"):
        return True
    if "is None" in text or "is not None" in text or "isinstance" in text:
        return not any(mode in text for mode in _MODES)
    if branch.orelse and _has_call(branch.body) and _has_call(branch.orelse):
        return not any(mode in text for mode in _MODES) and "%" not in text
    return _is_emptiness(branch.test)


def _is_emptiness(test: ast.expr) -> bool:
    """Whether a test only asks for rows to work on: `n == 0`, `mask.any()`, `start == end`."""
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Gt()], comparators=[other]):
            is_zero = isinstance(other, ast.Constant) and other.value == 0
            return is_zero or (isinstance(other, ast.Name) and isinstance(test.left, ast.Name))
        case ast.Call(func=ast.Attribute(attr="any" | "numel")) | ast.Subscript():
            return True
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_emptiness(operand)
        case _:
            return False


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Continue | ast.Break)


def _computes(branch: ast.AST) -> bool:
    """Whether the branch calls modules of its own."""
    body = branch.body if isinstance(branch, ast.If) else []
    return any("self." in unparse(s) and _has_call([s]) for s in body)


def _has_call(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Call) for statement in body for node in walk(statement))


def _selections(now: Program, was: Program) -> Iterator[Violation]:
    """Comparisons that pick rows, and parts taken of activations."""
    for piece in fresh(_compared(now), _compared(was)):
        yield _found(f"selects by `{piece.text[:70]}`", piece, "warning")
    for piece in fresh(_parts(now), _parts(was)):
        yield _found(f"{_TAKE}: `{piece.text[:70]}`", piece, "warning")


@remembered
def _compared(program: Program) -> list[Fragment]:
    return [
        piece
        for piece in pieces(program, forward_regions(program), _is_threshold, ast.Compare)
        if not isinstance(piece.scope.source.parents.get(piece.node), ast.If | ast.IfExp)
        and not _is_of_positions(piece)
    ]


def _is_of_positions(piece: Fragment) -> bool:
    """Whether positions are compared with each other, as masks are made."""
    text = unparse(piece.node)
    return "arange" in piece.text or text.count("None") >= 2


def _is_threshold(node: ast.AST) -> bool:
    match node:
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[other]):
            is_zero = isinstance(other, ast.Constant) and other.value == 0
            return not is_zero
        case _:
            return False


@remembered
def _parts(program: Program) -> list[Fragment]:
    return [
        piece
        for piece in pieces(program, forward_regions(program), _is_part, ast.Subscript, ast.Call)
        if not _is_table(piece.node)
    ]


def _is_part(node: ast.AST) -> bool:
    if partial_axis(node) in {0, 1}:
        return True
    match node:
        case ast.Call(func=ast.Attribute(attr="split" | "chunk"), args=args, keywords=keywords):
            dims = [k.value for k in keywords if k.arg == "dim"] or args[1:2]
            return any(isinstance(dim, ast.Constant) and dim.value in {0, 1} for dim in dims)
        case _:
            return False


def _is_table(node: ast.AST) -> bool:
    """Whether what is cut is a table of the module, cut to the length that came in."""
    if not isinstance(node, ast.Subscript):
        return False
    text = unparse(node.value)
    if text.endswith((".shape", ".size()")):
        return True
    if not isinstance(node.value, ast.Name | ast.Attribute):
        return False
    return text.startswith("self.") or any(word in text.lower() for word in _TABLES)


def _calls(now: Program, was: Program) -> Iterator[Violation]:
    """Draws and selections in the forward passes that were not there."""
    for piece in fresh(_selecting(now), _selecting(was)):
        yield _found(f"draws or selects by `{piece.text[:70]}`", piece, "warning")


@remembered
def _selecting(program: Program) -> list[Fragment]:
    return [
        Fragment(program, call.site.scope, call.site.call)
        for call in calls_in(program, forward_regions(program))
        if call.name in _PARTS | _DRAWS
    ]


def _unused(now: Program, was: Program) -> Iterator[Violation]:
    """Modules of a class that are still made and called no more."""
    after, before = _members(now), _members(was)
    owners = {owner for owner, _ in after}
    missing = [key for key in before if key not in after and key[0] in owners]
    made = _made(now) if missing else {}
    for owner, name in missing:
        if (owner, name) in made and not _is_read(now, name):
            yield violation(
                CODE,
                f"`{owner}.{name}` is called no more in the forward pass; the contract holds all "
                "of the model computed in training.",
                severity="warning",
                place=made[owner, name].place,
                contract_place=before[owner, name].place,
            )


@remembered
def _members(program: Program) -> dict[tuple[str, str], Fragment]:
    """`self.NAME` as it is read in the forward passes, by class and name."""
    found: dict[tuple[str, str], Fragment] = {}
    for scope, region in forward_regions(program):
        for _, node in nodes_in(((scope, region),), ast.Attribute):
            if _is_member(node) and scope.parent is not None:
                assert isinstance(node, ast.Attribute)
                key = (scope.parent.name, node.attr)
                found.setdefault(key, Fragment(program, scope, node))
    return found


def _is_read(program: Program, name: str) -> bool:
    """Whether an attribute is read somewhere, constructors apart."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and program.project.scope_of(file, node).name != "__init__"
        for file, source in program.project.files.items()
        for node in source.nodes
    )


@remembered
def _made(program: Program) -> dict[tuple[str, str], Fragment]:
    found: dict[tuple[str, str], Fragment] = {}
    for scope in program.module_scopes():
        if scope.name == "__init__" and scope.parent is not None:
            for name, events in scope.events.items():
                if name.startswith("self.") and isinstance(events[0].value, ast.Call):
                    key = (scope.parent.name, name.removeprefix("self."))
                    found[key] = Fragment(program, scope, events[0].node)
    return found


def _is_member(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Load()):
            return True
        case _:
            return False


def _found(what: str, piece: Fragment, severity: Severity) -> Violation:
    owner = next((s.name for s in piece.scope.around() if isinstance(s.node, ast.ClassDef)), "")
    subject = f"The forward pass of `{owner}`" if owner else "A forward pass"
    return violation(
        CODE,
        f"{subject} newly {what}; the contract holds every layer and token computed in training.",
        severity=severity,
        place=piece.place,
    )
