"""Python text to a syntax tree, also where the text is half typed.

A whole file goes straight through `ast`. A broken one is mended first: lines that cannot be
parsed are dropped (their indentation and the blocks below them kept), so that the facts of the
rest survive. parso says which lines those are where the interpreter's own message misleads.
"""

import ast
import functools
import re
import warnings
from collections.abc import Iterator
from typing import Any, cast
from weakref import WeakValueDictionary

import parso

from infrarsi.place import Place
from infrarsi.reading.half_typed import stand_ins
from infrarsi.reading.statements import assemble

_MAX_DROPPED = 6


class SourceFile:
    """One file's text and tree.

    `broken` are the 1-based lines that had to be dropped, `lost` the text of all that is missing
    in the tree; `nodes` are those of the whole tree, outer ones first.
    """

    def __init__(self, file: str, text: str, before: "SourceFile | None" = None) -> None:
        """Parse; never raises on any text. `before` is an earlier state of the file."""
        self.file = file
        self.text = text
        self.tree, self.broken = _parse(_encodable(text))
        ends = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]
        self._starts = [0, *ends]
        lines = [self.line(number + 1) for number in range(len(self._starts))]
        known = before.assembled.known if before is not None else {}
        self.assembled = assemble(self.tree, lines, self.broken, known)
        self.nodes, self.parents = self.assembled.nodes, self.assembled.parents
        self.lost = self._lost() if self.broken else ""

    @functools.cached_property
    def special_lines(self) -> tuple[int, ...]:
        """Where lambdas, `:=` and `yield` begin: most statements hold none."""
        kinds = (ast.NamedExpr, ast.Lambda, ast.Yield, ast.YieldFrom)
        return tuple(node.lineno for node in self.nodes if isinstance(node, kinds))

    def place(self, node: ast.AST, last: ast.AST | None = None) -> Place:
        """The span of a node, or from `node` to the end of `last`."""
        first, end = cast("Any", node), cast("Any", last or node)
        return Place(
            file=self.file,
            line=first.lineno,
            column=self._column(first.lineno, first.col_offset) + 1,
            end_line=end.end_lineno,
            end_column=self._column(end.end_lineno, end.end_col_offset) + 1,
        )

    def offset(self, line: int, column: int) -> int:
        """Code points before a 1-based line and column."""
        return self._starts[line - 1] + column - 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its end."""
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : end].rstrip("\r\n")

    def written(self, place: Place) -> str:
        """The text of a place in this file."""
        start = self.offset(place.line, place.column)
        return self.text[start : self.offset(place.end_line, place.end_column)]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds `node` (itself, if it is one)."""
        for candidate in (node, *self.ancestors(node)):
            if isinstance(candidate, ast.stmt):
                return candidate
        raise LookupError("a module is no statement")

    def _lost(self) -> str:
        """The broken lines, and those no statement of the tree stands on."""
        held: set[int] = set()
        for node in self.tree.body:
            held.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        numbers = range(1, len(self._starts) + 1)
        missing = [n for n in numbers if n in self.broken or n not in held]
        return "\n".join(self.line(n) for n in missing)

    def _column(self, line: int, n_bytes: int) -> int:
        head = self.line(line)
        if head.isascii():
            return n_bytes
        return len(_encodable(head).encode()[:n_bytes].decode(errors="ignore"))


def unparse(node: ast.AST) -> str:
    """The code of a node without its layout; kept with the node, which is not changed in place."""
    known = node.__dict__.get("_code")
    if known is None or known[0] != id(node):
        known = node.__dict__["_code"] = (id(node), ast.unparse(node))
    return known[1]


@functools.lru_cache(maxsize=64)
def parse_source(file: str, text: str) -> SourceFile:
    """The parsed file, the same object while anything holds on to it. Treat the tree as frozen."""
    found = _ALIVE.get((file, text))
    if found is None:
        found = _ALIVE[file, text] = SourceFile(file, text, _LATEST.get(file))
    _LATEST[file] = found
    return found


_LATEST: WeakValueDictionary[str, SourceFile] = WeakValueDictionary()
_ALIVE: WeakValueDictionary[tuple[str, str], SourceFile] = WeakValueDictionary()


def _encodable(text: str) -> str:
    """The text without what the parser refuses outright, of the same length."""
    return re.sub("[\ud800-\udfff\0\ufeff]", "?", text) if _ODD.search(text) else text


_ODD = re.compile("[\ud800-\udfff\0\ufeff]")


def _parse(text: str) -> tuple[ast.Module, tuple[int, ...]]:
    tree = _whole(text)
    if isinstance(tree, ast.Module):
        return tree, ()
    lines = re.split(r"\r\n|\r|\n", text)
    return _by_dropping(list(lines), tree) or _by_error_nodes(list(lines)) or _by_statement(text)


def _whole(text: str) -> ast.Module | int:
    """The tree, or the line the interpreter complains about (0 where it names none)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 0
    except (ValueError, RecursionError, MemoryError):
        return 0


def _by_dropping(lines: list[str], line: int) -> tuple[ast.Module, tuple[int, ...]] | None:
    """Drop the lines complained about, one after the other, while that is few lines."""
    tried: dict[int, Iterator[str]] = {}
    for _ in range(3 * _MAX_DROPPED):
        line = _culprit(lines, line)
        if not 0 < line <= len(lines) or not lines[line - 1].strip():
            return None
        if line not in tried:
            tried[line] = _stand_ins(lines, line)
        lines[line - 1] = next(tried[line], "")
        tree = _whole("\n".join(lines))
        if isinstance(tree, ast.Module):
            return tree, tuple(sorted(tried))
        line = tree
    return None


def _culprit(lines: list[str], line: int) -> int:
    """The line before, where that one breaks off at a sign: the next is then complained about."""
    before = lines[line - 2].rstrip() if 1 < line <= len(lines) else ""
    return line - 1 if before.endswith(("=", "+", "-", "*", "/", ".", "%")) else line


def _by_error_nodes(lines: list[str]) -> tuple[ast.Module, tuple[int, ...]] | None:
    """Drop the spans parso could not make sense of."""
    try:
        module = parso.parse("\n".join(lines))
        spans = list(_error_spans(module))
    except RecursionError:
        return None
    dropped = sorted({n for first, last in spans for n in range(first, last + 1)})
    for number in reversed(dropped):
        lines[number - 1] = next(_stand_ins(lines, number))
    tree = _whole("\n".join(lines))
    return (tree, tuple(dropped)) if isinstance(tree, ast.Module) else None


def _error_spans(node: Any) -> Iterator[tuple[int, int]]:
    if node.type in {"error_node", "error_leaf"}:
        if node.get_code(include_prefix=False).strip():
            yield node.start_pos[0], node.end_pos[0]
        return
    for child in getattr(node, "children", ()):
        yield from _error_spans(child)


def _by_statement(text: str) -> tuple[ast.Module, tuple[int, ...]]:
    """Keep the top-level statements that parse by themselves."""
    body: list[ast.stmt] = []
    dropped: list[int] = []
    try:
        children = cast("list[Any]", parso.parse(text).children)
    except RecursionError:
        children = []
    for child in children:
        line, column = child.start_pos
        tree = _whole("\n" * (line - 1) + child.get_code(include_prefix=False))
        if isinstance(tree, ast.Module) and column == 0:
            body += tree.body
        else:
            dropped.append(line)
    return ast.Module(body=body, type_ignores=[]), tuple(dropped)


def _stand_ins(lines: list[str], number: int) -> Iterator[str]:
    """Lines that may parse in the place of a broken one and hold the block below it, if any."""
    line = lines[number - 1]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    below = next((text for text in lines[number:] if text.strip()), "")
    deeper = len(below) - len(below.lstrip(" \t")) > len(indent)
    texts = stand_ins(line.strip(), has_block=deeper)
    return iter([indent + text for text in texts])
