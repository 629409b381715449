"""Spreads one-line spellings of a micro-step over lines, so that recipes meet one form.

`for b in loader: loss = f(b); loss.backward()` gets a block, and
`criterion(model(x), y).backward()` a name for its loss. Everything else stays as written.
"""

from collections.abc import Callable

import libcst as cst

from infrarsi.patches.modules import Module
from infrarsi.patches.rewriting import Rewriting
from infrarsi.patches.syntax import calls, dotted, method, receiver, walk

_NAME = "micro_loss"


def spread_micro_steps(module: Module, is_forward: Callable[[cst.CSTNode], bool]) -> Module:
    """The module with every backward call on a line of its own, on a plain name.

    Args:
        module: the file.
        is_forward: whether an expression calls the model.
    """
    tree = cst.ensure_type(module.tree.visit(_Spread(module.tree)), cst.Module)
    tree = _name_losses(tree, is_forward)
    return module if tree is module.tree else Module(path=module.path, tree=tree, bom=module.bom)


def _name_losses(tree: cst.Module, is_forward: Callable[[cst.CSTNode], bool]) -> cst.Module:
    used = {n.value for n in walk(tree) if isinstance(n, cst.Name)}
    name = _NAME
    while name in used:
        name += "_"
    rewriting = Rewriting()
    for line in walk(tree):
        if not isinstance(line, cst.SimpleStatementLine) or not _calls_backward(line):
            continue
        for call in calls(line):
            loss = receiver(call)
            if method(call) == "backward" and loss is not None and is_forward(loss):
                bare = loss.with_changes(lpar=(), rpar=())
                target = cst.AssignTarget(target=cst.Name(name))
                assign = cst.SimpleStatementLine(body=[cst.Assign(targets=[target], value=bare)])
                rewriting.insert_before(line, assign)
                rewriting.replace(loss, cst.Name(name))
    return rewriting.apply(tree) if rewriting else tree


def _calls_backward(node: cst.CSTNode) -> bool:
    return any(
        method(call) == "backward" or (dotted(call.func) or "").endswith("autograd.backward")
        for call in calls(node)
    )


class _Spread(cst.CSTTransformer):
    """One statement a line and a block for each body, where backward is called."""

    def __init__(self, tree: cst.Module) -> None:
        super().__init__()
        self._touched = {
            node
            for node in walk(tree)
            if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite)
            and _calls_backward(node)
            and (len(node.body) > 1 or isinstance(node, cst.SimpleStatementSuite))
        }

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        if original_node not in self._touched:
            return updated_node
        lines = _lines(updated_node)
        lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        lines[-1] = lines[-1].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        return cst.FlattenSentinel(lines)

    def leave_SimpleStatementSuite(  # noqa: N802
        self, original_node: cst.SimpleStatementSuite, updated_node: cst.SimpleStatementSuite
    ) -> cst.BaseSuite:
        if original_node not in self._touched:
            return updated_node
        lines = _lines(updated_node)
        lines[-1] = lines[-1].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        return cst.IndentedBlock(body=lines)


def _lines(
    node: cst.SimpleStatementLine | cst.SimpleStatementSuite,
) -> list[cst.SimpleStatementLine]:
    return [
        cst.SimpleStatementLine(body=[part.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
        for part in node.body
    ]
