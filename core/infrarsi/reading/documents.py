"""Configuration files as trees whose every value carries its exact span.

YAML, TOML and JSON are read by their file's ending. A file that is half typed keeps what its
other lines say; `broken` names the lines that were left out. Nothing here raises on any text.
"""

import bisect
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from infrarsi.frozen import Scalar
from infrarsi.place import Place

Format = Literal["yaml", "toml", "json"]
_ENDINGS: dict[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}
_MAX_LENGTH = 60_000


@dataclass(frozen=True, eq=False)
class Leaf:
    """A scalar, from offset `start` up to `end`; a value of no plain type is None, not `plain`."""

    value: Scalar | None
    start: int
    end: int
    plain: bool = True


@dataclass(frozen=True, eq=False)
class Table:
    """Named nodes, in the order of the file."""

    fields: Mapping[str, "Node"]


@dataclass(frozen=True, eq=False)
class Items:
    """A list of nodes."""

    nodes: tuple["Node", ...]


Node = Leaf | Table | Items


@dataclass(frozen=True, eq=False)
class Document:
    """One parsed file. `broken` are 1-based lines that could not be read."""

    file: str
    text: str
    format: Format
    root: Node
    broken: tuple[int, ...] = ()

    def place(self, leaf: Leaf) -> Place:
        """Where a scalar stands."""
        line, column = self._position(leaf.start)
        end_line, end_column = self._position(leaf.end)
        return Place(
            file=self.file, line=line, column=column, end_line=end_line, end_column=end_column
        )

    def line_place(self, number: int) -> Place:
        """The span of a 1-based line without its indentation."""
        starts = line_starts(self.text)
        start = starts[number - 1]
        end = starts[number] if number < len(starts) else len(self.text)
        line = self.text[start:end].rstrip()
        first = len(line) - len(line.lstrip()) + 1
        end_column = max(first + 1, len(line) + 1)
        return Place(
            file=self.file, line=number, column=first, end_line=number, end_column=end_column
        )

    def leaf(self, name: str) -> Leaf | None:
        """The scalar under a dotted name such as `train.micro_batch` or `stages.0.steps`."""
        node: Node | None = self.root
        rest = name
        while node is not None and not isinstance(node, Leaf):
            if isinstance(node, Table) and rest in node.fields:
                node, rest = node.fields[rest], ""
                break
            key, _, rest = rest.partition(".")
            node = _child(node, key)
        return node if isinstance(node, Leaf) and not rest else None

    def _position(self, offset: int) -> tuple[int, int]:
        starts = line_starts(self.text)
        line = bisect.bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1


def format_of(path: str) -> Format | None:
    """The format of a file by its ending, None where it is no configuration file."""
    dot = path.rfind(".")
    return _ENDINGS.get(path[dot:].lower()) if dot >= 0 else None


@functools.lru_cache(maxsize=64)
def parse_document(file: str, text: str, form: Format) -> Document:
    """Read a configuration file; a value that cannot be read is no plain one.

    Very long files are data, not configuration, and are not read.
    """
    from infrarsi.reading.document_json import parse_json
    from infrarsi.reading.document_toml import parse_toml
    from infrarsi.reading.document_yaml import parse_yaml

    if len(text) > _MAX_LENGTH:
        return Document(file, text, form, Leaf(None, 0, 0, plain=False))
    parsers = {"yaml": parse_yaml, "toml": parse_toml, "json": parse_json}
    try:
        root, broken = parsers[form](text)
    except RecursionError:
        root, broken = Leaf(None, 0, 0, plain=False), (1,)
    return Document(file, text, form, root, broken)


@functools.lru_cache(maxsize=64)
def line_starts(text: str) -> tuple[int, ...]:
    """Offsets at which lines begin."""
    return (0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text)))


def line_of(text: str, offset: int) -> int:
    """The 1-based line an offset is in."""
    return bisect.bisect_right(line_starts(text), offset)


def nest(fields: dict[str, Node], keys: tuple[str, ...], node: Node) -> None:
    """Put a node under dotted keys, making the tables on the way."""
    for key in keys[:-1]:
        inner = fields.get(key)
        if isinstance(inner, Items) and inner.nodes:
            inner = inner.nodes[-1]
        if not isinstance(inner, Table):
            inner = fields[key] = Table({})
        fields = inner.fields if isinstance(inner.fields, dict) else {}
    fields[keys[-1]] = node


def _child(node: Table | Items, key: str) -> Node | None:
    if isinstance(node, Table):
        return node.fields.get(key)
    index = int(key) if key.isascii() and key.isdecimal() and len(key) < 9 else -1
    return node.nodes[index] if 0 <= index < len(node.nodes) else None
