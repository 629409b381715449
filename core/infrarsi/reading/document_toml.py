"""TOML texts to trees with spans, statement by statement, so that a broken line stays alone."""

import re
import tomllib

from infrarsi.reading.documents import Items, Leaf, Node, Table, line_of, nest

_KEY = re.compile(r"[ \t]*(?:([A-Za-z0-9_-]+)|\"([^\"\n]*)\"|'([^'\n]*)')[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[^\s,\]}#]+(?: \d\d:[\d:.+Z-]+)?")
_STRING = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?\"{3,5}|'''.*?'{3,5}|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'", re.DOTALL
)
_PLAIN = (bool, int, float, str)
_MAX_DEPTH = 40


def parse_toml(text: str) -> tuple[Node, tuple[int, ...]]:
    """The root and the broken lines."""
    reader = _Reader(text)
    reader.statements()
    return Table(reader.root), tuple(dict.fromkeys(reader.broken))


class _Broken(Exception):
    """This statement cannot be read."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.root: dict[str, Node] = {}
        self.table: tuple[str, ...] = ()
        self.broken: list[int] = []

    def statements(self) -> None:
        while self._skip() < len(self.text):
            start = self.at
            try:
                self._header() if self.text[start] == "[" else self._pair(self.root, self.table, 0)
                self._line_end()
            except _Broken:
                self.broken.append(line_of(self.text, start))
                self.at = start
                if self.text[start] == "[":
                    self.table = ("",)
                else:
                    self._lost(start)
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end + 1

    def _lost(self, start: int) -> None:
        """Keep the name whose value cannot be read."""
        try:
            keys = self._keys()
        except _Broken:
            return
        if self.text.startswith("=", self.at):
            nest(self.root, (*self.table, *keys), Leaf(None, self.at, self.at, plain=False))
        self.at = start

    def _header(self) -> None:
        is_list = self.text.startswith("[[", self.at)
        self.at += 2 if is_list else 1
        keys = self._keys()
        if not self.text.startswith("]]" if is_list else "]", self.at):
            raise _Broken
        self.at += 2 if is_list else 1
        self.table = keys
        if is_list:
            held = self._held(keys)
            more = held.nodes if isinstance(held, Items) else ()
            nest(self.root, keys, Items((*more, Table({}))))
        elif not isinstance(self._held(keys), Table):
            nest(self.root, keys, Table({}))

    def _held(self, keys: tuple[str, ...]) -> Node | None:
        node: Node | None = Table(self.root)
        for key in keys:
            if isinstance(node, Items):
                node = node.nodes[-1] if node.nodes else None
            node = node.fields.get(key) if isinstance(node, Table) else None
        return node

    def _pair(self, fields: dict[str, Node], table: tuple[str, ...], depth: int) -> None:
        keys = self._keys()
        if not self.text.startswith("=", self.at):
            raise _Broken
        self.at += 1
        self.at += len(self.text[self.at :]) - len(self.text[self.at :].lstrip(" \t"))
        nest(fields, (*table, *keys), self._value(depth))

    def _keys(self) -> tuple[str, ...]:
        keys: list[str] = []
        while (match := _KEY.match(self.text, self.at)) is not None:
            keys.append(next(group for group in match.groups() if group is not None))
            self.at = match.end()
            if not self.text.startswith(".", self.at):
                return tuple(keys)
            self.at += 1
        raise _Broken

    def _value(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise _Broken
        match self.text[self.at : self.at + 1]:
            case "[":
                return self._items(depth)
            case "{":
                return self._inline(depth)
            case character:
                pattern = _STRING if character in ('"', "'") else _BARE
                written = pattern.match(self.text, self.at)
                if written is None:
                    raise _Broken
                start, self.at = self.at, written.end()
                return _leaf(written[0], start)

    def _items(self, depth: int) -> Items:
        self.at += 1
        nodes: list[Node] = []
        while True:
            self._skip()
            if self.text.startswith("]", self.at):
                self.at += 1
                return Items(tuple(nodes))
            nodes.append(self._value(depth + 1))
            self._comma("]")

    def _inline(self, depth: int) -> Table:
        self.at += 1
        fields: dict[str, Node] = {}
        while True:
            self._skip()
            if self.text.startswith("}", self.at):
                self.at += 1
                return Table(fields)
            self._pair(fields, (), depth + 1)
            self._comma("}")

    def _comma(self, closing: str) -> None:
        self._skip()
        if self.text.startswith(",", self.at):
            self.at += 1
        elif not self.text.startswith(closing, self.at):
            raise _Broken

    def _skip(self) -> int:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _line_end(self) -> None:
        rest = re.compile(r"[ \t\r]*(#[^\n]*)?(\n|$)").match(self.text, self.at)
        if rest is None:
            raise _Broken


def _leaf(written: str, start: int) -> Leaf:
    try:
        value = tomllib.loads(f"v = {written}")["v"]
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise _Broken from error
    plain = isinstance(value, _PLAIN)
    return Leaf(value if plain else None, start, start + len(written), plain)
