"""YAML texts to trees with spans, as PyYAML's safe loader would resolve them.

A text that does not parse is read again without the line that breaks it, and else line by line.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import yaml

from infrarsi.reading.documents import Items, Leaf, Node, Table, line_of, line_starts

_MAX_NODES = 20_000
_MAX_DEPTH = 60
_PLAIN = (bool, int, float, str)
_LINE = re.compile(r"(?P<indent>[ ]*)(?P<key>[\w./@-]+|\"[^\"]*\"|'[^']*')[ ]*:(?:[ ]+|$)")


def parse_yaml(text: str) -> tuple[Node, tuple[int, ...]]:
    """The first document's root and the broken lines."""
    clean = re.sub("[\ud800-\udfff\ufeff\x00]", " ", text)
    whole = _composed(clean)
    if not isinstance(whole, yaml.YAMLError):
        return whole, ()
    for number in _suspects(clean, whole):
        mended = _composed(_without(clean, number))
        if not isinstance(mended, yaml.YAMLError):
            return _without_line(mended, clean, number), (number,)
    return _by_line(clean)


def _composed(text: str) -> Node | yaml.YAMLError:
    loader = yaml.SafeLoader(text) if _is_readable(text) else None
    if loader is None:
        return yaml.YAMLError("it holds control characters")
    try:
        root = loader.get_node() if loader.check_node() else None
        return _Converter(loader).node(root, 0) if root is not None else Table({})
    except yaml.YAMLError as error:
        return error
    except (ValueError, IndexError, OverflowError) as error:
        return yaml.YAMLError(str(error))
    finally:
        loader.dispose()


def _is_readable(text: str) -> bool:
    return yaml.reader.Reader.NON_PRINTABLE.search(text) is None


class _Converter:
    """Composed nodes to ours, with a bound on how far aliases may multiply."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._n_nodes = 0

    def node(self, node: Any, depth: int) -> Node:
        self._n_nodes += 1
        if depth > _MAX_DEPTH or self._n_nodes > _MAX_NODES:
            return Leaf(None, node.start_mark.index, node.start_mark.index, plain=False)
        if isinstance(node, yaml.MappingNode):
            return Table(self._fields(node, depth))
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.node(item, depth + 1) for item in node.value))
        return self._scalar(node)

    def _fields(self, node: Any, depth: int) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        own: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.tag == "tag:yaml.org,2002:merge":
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in reversed(parts):
                    merged = self.node(part, depth + 1)
                    fields |= merged.fields if isinstance(merged, Table) else {}
            else:
                own[str(key.value)] = self.node(value, depth + 1)
        return {**fields, **own}

    def _scalar(self, node: Any) -> Leaf:
        start, end = node.start_mark.index, node.end_mark.index
        try:
            value: object = self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError, KeyError, IndexError):
            return Leaf(None, start, end, plain=False)
        if value is None or isinstance(value, _PLAIN):
            return Leaf(cast("Any", value), start, end)
        return Leaf(None, start, end, plain=False)


def _suspects(text: str, error: yaml.YAMLError) -> list[int]:
    """The lines whose loss may mend the text, the likeliest first."""
    marks = (getattr(error, "problem_mark", None), getattr(error, "context_mark", None))
    lines = [mark.line + 1 for mark in marks if mark is not None]
    above = [_line_above(text, line) for line in lines[:1]]
    count = len(line_starts(text))
    opened = _unclosed(text, max(lines, default=count))
    return list(dict.fromkeys(n for n in [*lines, *above, *opened] if 1 <= n <= count))


def _unclosed(text: str, last: int) -> list[int]:
    """Lines that open a bracket or quotation mark they do not close, the nearest above first."""
    found: list[int] = []
    for number, line in enumerate(text.splitlines()[:last], 1):
        pairs = any(line.count(a) > line.count(b) for a, b in ("[]", "{}"))
        if pairs or line.count('"') % 2 or line.count("'") % 2:
            found.append(number)
    return found[:-4:-1]


def _line_above(text: str, number: int) -> int:
    """The nearest line above that is not blank."""
    starts = line_starts(text)
    number = min(number, len(starts))
    while number > 1:
        number -= 1
        if text[starts[number - 1] : starts[number]].strip():
            break
    return number


def _without(text: str, number: int) -> str:
    """The text with a line blanked; offsets stay. What stands below it keeps a key of its own."""
    starts = line_starts(text)
    start = starts[number - 1]
    end = starts[number] if number < len(starts) else len(text)
    line = text[start:end]
    blank = re.sub(r"[^\r\n]", " ", line)
    key = _LINE.match(line)
    if key is not None:
        return text[: start + key.end()] + blank[key.end() :] + text[end:]
    below = next((other for _, other in _lines(text[end:])), "")
    indent = len(line) - len(line.lstrip(" "))
    if len(below) - len(below.lstrip(" ")) > indent and len(line.strip()) > 1:
        blank = f"{blank[:indent]}~:{blank[indent + 2 :]}"
    return text[:start] + blank + text[end:]


def _by_line(text: str) -> tuple[Node, tuple[int, ...]]:
    """`key: value` lines, nested by their indentation."""
    root: dict[str, Node] = {}
    open_tables: list[tuple[int, dict[str, Node]]] = [(-1, root)]
    broken: list[int] = []
    for start, line in _lines(text):
        match = _LINE.match(line)
        indent = len(line) - len(line.lstrip(" "))
        while open_tables[-1][0] >= indent:
            open_tables.pop()
        value = _line_value(line[match.end() :], start + match.end()) if match else None
        fields, key = open_tables[-1][1], match["key"].strip("\"'") if match else ""
        if value is None:
            broken.append(line_of(text, start))
            if match is not None:
                fields[key] = Leaf(None, start, start, plain=False)
            if len(open_tables) < _MAX_DEPTH:
                open_tables.append((indent, {}))
        elif isinstance(value, Table) and not value.fields and len(open_tables) < _MAX_DEPTH:
            inner: dict[str, Node] = {}
            fields[key] = Table(inner)
            open_tables.append((indent, inner))
        else:
            fields[key] = value
    return Table(root), tuple(broken)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their offsets."""
    starts = line_starts(text)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        line = text[start:end].rstrip()
        if line.strip() and not line.lstrip().startswith(("#", "---", "...")):
            yield start, line


def _line_value(text: str, offset: int) -> Node | None:
    """A value written on one line, an empty table where there is none, None where broken."""
    if not text.strip() or text.lstrip().startswith("#"):
        return Table({})
    value = _composed(text)
    return None if isinstance(value, yaml.YAMLError) else _moved(value, offset)


def _without_line(node: Node, text: str, number: int) -> Node:
    """The tree with the empty value of a blanked line marked as not read."""
    match node:
        case Leaf(value=None, start=start, end=end) if line_of(text, start) == number:
            return Leaf(None, start, end, plain=False)
        case Leaf():
            return node
        case Items(nodes=nodes):
            return Items(tuple(_without_line(inner, text, number) for inner in nodes))
        case Table(fields=fields):
            return Table({k: _without_line(inner, text, number) for k, inner in fields.items()})


def _moved(node: Node, by: int) -> Node:
    match node:
        case Leaf(value=value, start=start, end=end, plain=plain):
            return Leaf(value, start + by, end + by, plain)
        case Items(nodes=nodes):
            return Items(tuple(_moved(inner, by) for inner in nodes))
        case Table(fields=fields):
            return Table({key: _moved(inner, by) for key, inner in fields.items()})
