"""S415: assertions and checks of the baseline stay.

An assertion says what must hold, such as the rows of a step or that two sizes divide. Taking it
out is the first half of breaking it. Assertions and conditions that raise and that are gone are
looked for; one that is written otherwise or moved is not gone.

Mend it by putting the check back, before the loop where it costs time.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import all_pieces, shown, warned

CODE = "S415"
_PAIRS = ((ast.Eq, ast.NotEq), (ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.In, ast.NotIn))
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    one: other for a, b in (*_PAIRS, (ast.Is, ast.IsNot)) for one, other in ((a, b), (b, a))
}


def find(change: Change) -> Iterator[Violation]:
    """A warning for each check that is gone."""
    if change.sides is None:
        return
    now, was = change.sides
    for piece in fresh(_checks(was, now), _checks(now, was)):
        if _is_negated(piece, now, was):
            continue
        yield warned(
            CODE,
            f"The check `{shown(piece.written)}` is gone; the contract holds that checks stay.",
            _near(now, piece),
            contract_place=piece.place,
        )


@remembered
def _checks(program: Program, other: Program) -> list[Fragment]:
    """The tests of assertions, and of conditions that do nothing but raise."""
    found = [
        Fragment(program, piece.scope, piece.node.test)
        for piece in all_pieces(program, other, lambda _: True, ast.Assert)
        if isinstance(piece.node, ast.Assert)
    ]
    return found + [
        Fragment(program, piece.scope, piece.node.test)
        for piece in all_pieces(program, other, _raises, ast.If)
        if isinstance(piece.node, ast.If)
    ]


def _raises(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    last = node.body[-1]
    exits = isinstance(last, ast.Expr) and unparse(last).startswith(("sys.exit(", "parser.error("))
    return isinstance(last, ast.Raise) or exits


def _is_negated(piece: Fragment, now: Program, was: Program) -> bool:
    """Whether the check is there the other way round: `assert x` for `if not x: raise`."""
    texts = {check.key for check in _checks(now, was)}
    node = piece.node
    assert isinstance(node, ast.expr)
    turned = node.operand if isinstance(node, ast.UnaryOp) else ast.UnaryOp(ast.Not(), node)
    choices = [turned]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        op = _OPPOSITE[type(node.ops[0])]()
        choices.append(ast.Compare(node.left, [op], node.comparators))
    fixed = [ast.fix_missing_locations(ast.copy_location(choice, node)) for choice in choices]
    return any(Fragment(piece.program, piece.scope, choice).key in texts for choice in fixed)


def _near(now: Program, piece: Fragment) -> Place | None:
    """The function the check stood in, else the file."""
    for scope in now.project.scopes.values():
        node = scope.node
        if scope.name and scope.name == piece.scope.name and isinstance(node, ast.FunctionDef):
            head = scope.source.place(node)
            line = scope.source.line(head.line)
            return head.model_copy(
                update={"end_line": head.line, "end_column": len(line.rstrip()) + 1}
            )
    file = piece.scope.source.file
    if now.sources.text(file) is None:
        return None
    return Place(file=file, line=1, end_line=1, end_column=1)
