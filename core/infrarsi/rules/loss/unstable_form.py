"""L217: softmax, logarithms and variances keep their stable form.

exp(x) / sum(exp(x)) overflows where softmax, which subtracts the maximum first, does not;
log(softmax(x)) loses what log_softmax keeps; E[x*x] - E[x]**2 cancels. Such rewrites save an
operation and fail on large values. `scaled_dot_product_attention` and log-sum-exp are stable.

Mend it by the library's own function.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee
from infrarsi.rules.loss.methods import changed_methods
from infrarsi.rules.loss.sides import has_name

CODE = "L217"
_STABLE = ("softmax", "log_softmax", "logsumexp", "cross_entropy", "Softmax")
_GUARDS = {"max", "amax", "logsumexp", "softmax", "cummax", "maximum"}


def find(change: Change) -> Iterator[Violation]:
    """An error where a stable function gave way to bare exponentials or a logarithm of softmax."""
    if change.sides is None:
        return
    now, was = change.sides
    fewer = len(_used(now, *_STABLE)) < len(_used(was, *_STABLE))
    for call in added(_used(now, "exp"), _used(was, "exp"), key=callee):
        if not _is_guarded(now, call):
            what = "Exponentials are taken without subtracting the maximum"
            yield _finding(what, call.place, certain=fewer)
            break
    logarithms = [call for call in _used(now, "log") if _of_softmax(now, call)]
    held = [call for call in _used(was, "log") if _of_softmax(was, call)]
    for call in added(logarithms, held, key=callee):
        yield _finding("A logarithm is taken of a softmax", call.place, certain=True)
        break
    yield from _variances(now, was)


def _used(program: Program, *names: str) -> list[Call]:
    return [call for call in program.named(*names) if call.in_model or call.in_step]


def _is_guarded(program: Program, call: Call) -> bool:
    scope = call.site.scope
    return any(
        other.site.scope is scope and other.name in _GUARDS for other in program.calls
    ) or _is_of_constants(program, call)


def _is_of_constants(program: Program, call: Call) -> bool:
    """Whether it only makes tables, as those of positions: nothing learned enters it."""
    nodes = [*call.site.call.args]
    if isinstance(call.site.call.func, ast.Attribute):
        nodes.append(call.site.call.func.value)
    return any(
        has_name(program.write_out(node, call.site.scope), "arange", "linspace") for node in nodes
    )


def _of_softmax(program: Program, call: Call) -> bool:
    func = call.site.call.func
    base = func.value if isinstance(func, ast.Attribute) else None
    nodes = [*call.site.call.args, *([base] if base is not None else [])]
    return any(has_name(program.write_out(node, call.site.scope), "softmax") for node in nodes)


def _variances(now: Program, was: Program) -> Iterator[Violation]:
    for scope, before in changed_methods(now, was):
        if any(_is_difference(node) for node in walk(before.node)):
            continue
        for node in walk(scope.node):
            if _is_difference(node):
                what = "A variance is computed as a difference of two means"
                yield _finding(what, scope.source.place(node), certain=False)
                return


def _is_difference(node: ast.AST) -> bool:
    """`mean(x * x) - mean ** 2` in its usual spellings."""
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return has_name(left, "mean") and _is_square(right) and not has_name(right, "eps")
        case _:
            return False


def _is_square(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=2)):
            return True
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return unparse(left) == unparse(right)
        case ast.Call(func=ast.Attribute(attr="square")):
            return True
        case ast.Call(func=ast.Attribute(attr="pow"), args=[ast.Constant(value=2)]):
            return True
        case _:
            return False


def _finding(what: str, place: Place, certain: bool) -> Violation:
    text = f"{what}; the contract holds the stable form."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
