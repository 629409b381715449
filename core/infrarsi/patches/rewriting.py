"""Applying node-for-node changes to a tree, comments kept.

Replacements are keyed by the original node, so a recipe first looks and then changes once.
"""

from collections.abc import Callable, Sequence
from typing import cast

import libcst as cst

from infrarsi.patches.syntax import Block

Change = Callable[[cst.CSTNode], cst.CSTNode]
"""From the node with everything below it changed already, to what stands in its place."""

BodyChange = Callable[[list[cst.BaseStatement]], list[cst.BaseStatement]]


class Rewriting:
    """Changes collected for one tree."""

    def __init__(self) -> None:
        """Nothing changes yet."""
        self._changes: dict[cst.CSTNode, list[Change]] = {}
        self._dropped: set[cst.CSTNode] = set()
        self._before: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._after: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._wrapped: dict[cst.CSTNode, tuple[cst.BaseStatement, Callable[..., cst.With]]] = {}

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return any((self._changes, self._dropped, self._before, self._after, self._wrapped))

    def change(self, node: cst.CSTNode, change: Change) -> None:
        """Apply `change` when `node` is left; several apply in order."""
        self._changes.setdefault(node, []).append(change)

    def replace(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        """Put `new` where `node` stands."""
        self.change(node, lambda _: new)

    def drop(self, statement: cst.CSTNode) -> None:
        """Take out a statement (a line or one part of `a; b`); its comments above stay."""
        self._dropped.add(statement)

    def insert_before(self, statement: cst.BaseStatement, new: cst.BaseStatement) -> None:
        """Put `new` on the line before `statement`, below its comments' blank lines."""
        self._before.setdefault(statement, []).append(new)

    def insert_after(self, statement: cst.BaseStatement, new: cst.BaseStatement) -> None:
        """Put `new` on the line behind `statement`."""
        self._after.setdefault(statement, []).append(new)

    def wrap(
        self,
        first: cst.BaseStatement,
        last: cst.BaseStatement,
        header: Callable[..., cst.With],
    ) -> None:
        """Indent the statements from `first` to `last` under what `header` makes."""
        self._wrapped[first] = (last, header)

    def apply(self, tree: cst.Module) -> cst.Module:
        """The changed tree."""
        return cst.ensure_type(tree.visit(_Rewriter(self)), cst.Module)

    def changed(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        """What stands in place of `original`."""
        for change in self._changes.get(original, ()):
            updated = change(updated)
        return updated

    def is_dropped(self, statement: cst.CSTNode) -> bool:
        """Whether the statement goes, being dropped or a line of dropped parts only."""
        if statement in self._dropped:
            return True
        if isinstance(statement, cst.SimpleStatementLine):
            return bool(statement.body) and all(part in self._dropped for part in statement.body)
        return False

    def touches_body(self, body: Sequence[cst.CSTNode]) -> bool:
        """Whether the list of statements itself changes."""
        return any(
            self.is_dropped(s) or s in self._before or s in self._after or s in self._wrapped
            for s in body
        )

    def changed_body(
        self, original: Sequence[cst.BaseStatement], updated: Sequence[cst.BaseStatement]
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        """The new statements, and comment lines of dropped ones that nothing follows."""
        out: list[cst.BaseStatement] = []
        carried: list[cst.EmptyLine] = []
        open_wrap: tuple[int, cst.BaseStatement, Callable[..., cst.With]] | None = None
        for old, new in zip(original, updated, strict=True):
            if old in self._wrapped:
                open_wrap = (len(out), *self._wrapped[old])
            if self.is_dropped(old):
                carried += _leading(new)
            else:
                group = [*self._before.get(old, ()), new, *self._after.get(old, ())]
                lines = _leading(new)
                if carried:
                    lines = _without_double_blanks([*carried, *lines])
                if group[0] is not new:
                    group[group.index(new)] = _with_leading(new, [])
                out += [_with_leading(group[0], lines), *group[1:]]
                carried = []
            if open_wrap is not None and old is open_wrap[1]:
                start, _, header = open_wrap
                inner, out = out[start:], out[:start]
                out.append(_wrapped(inner, header))
                open_wrap = None
        return out, carried


class _Rewriter(cst.CSTTransformer):
    def __init__(self, rewriting: Rewriting) -> None:
        super().__init__()
        self._rewriting = rewriting

    def on_leave(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        node = updated_node
        if isinstance(original_node, cst.Module | cst.IndentedBlock):
            node = self._leave_block(original_node, cast(Block, node))
        if isinstance(original_node, cst.SimpleStatementLine):
            node = self._leave_line(original_node, cast(cst.SimpleStatementLine, node))
        return self._rewriting.changed(original_node, node)

    def _leave_block(self, original: Block, updated: Block) -> cst.CSTNode:
        if not self._rewriting.touches_body(original.body):
            return updated
        body, rest = self._rewriting.changed_body(
            cast(Sequence[cst.BaseStatement], original.body),
            cast(Sequence[cst.BaseStatement], updated.body),
        )
        return updated.with_changes(body=body, footer=[*rest, *updated.footer])

    def _leave_line(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.CSTNode:
        kept = [
            new
            for old, new in zip(original.body, updated.body, strict=True)
            if not self._rewriting.is_dropped(old)
        ]
        if not kept or len(kept) == len(original.body):
            return updated
        kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(body=kept)


def ensure_import(tree: cst.Module, full: str) -> cst.Module:
    """Add `import full` behind the last import at the top, if the file does not have it."""
    body = list(tree.body)
    position = 0
    for index, statement in enumerate(body):
        if _is_docstring(statement, index) or _is_import(statement):
            position = index + 1
        elif position < index:
            break
    line = cst.SimpleStatementLine(body=[cst.Import(names=[cst.ImportAlias(name=_name(full))])])
    if position == 0 and tree.header:
        return tree.with_changes(body=[line, *body])
    return tree.with_changes(body=[*body[:position], line, *body[position:]])


def _is_docstring(statement: cst.CSTNode, index: int) -> bool:
    return (
        index == 0
        and isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(part, cst.Import | cst.ImportFrom) for part in statement.body
    )


def _name(full: str) -> cst.Name | cst.Attribute:
    return cast("cst.Name | cst.Attribute", cst.parse_expression(full))


def _leading(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    return list(cast(Sequence[cst.EmptyLine], getattr(statement, "leading_lines", ())))


def _with_leading(
    statement: cst.BaseStatement, lines: Sequence[cst.EmptyLine]
) -> cst.BaseStatement:
    return statement.with_changes(leading_lines=lines)


def _without_double_blanks(lines: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    out: list[cst.EmptyLine] = []
    for line in lines:
        if line.comment is None and out and out[-1].comment is None:
            continue
        out.append(line)
    return out


def _wrapped(inner: list[cst.BaseStatement], header: Callable[..., cst.With]) -> cst.BaseStatement:
    lines = _leading(inner[0])
    body = cst.IndentedBlock(body=[_with_leading(inner[0], ()), *inner[1:]])
    return header(body=body, leading_lines=lines)
