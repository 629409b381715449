"""JSON texts to trees with spans; what breaks in the middle costs only its own value."""

import json
import re

from infrarsi.reading.documents import Items, Leaf, Node, Table, line_of

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(\.\d+)?([eE][+-]?\d+)?")
_STRING = re.compile(r"\"(?:[^\"\\\r\n]|\\[^\r\n])*\"")
_WORDS = {"true": True, "false": False, "null": None}
_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_MAX_DEPTH = 60


def parse_json(text: str) -> tuple[Node, tuple[int, ...]]:
    """The root and the broken lines. Comments and trailing commas are passed over."""
    reader = _Reader(text)
    root = reader.value(0)
    if root is None:
        return Table({}), tuple(dict.fromkeys(reader.broken))
    if reader.skip() < len(text):
        reader.fail()
    return root, tuple(dict.fromkeys(reader.broken))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.broken: list[int] = []

    def skip(self) -> int:
        """Pass over blanks and comments."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def fail(self) -> None:
        self.broken.append(line_of(self.text, min(self.at, max(0, len(self.text) - 1))))

    def value(self, depth: int) -> Node | None:
        """The value here, None (and nothing consumed) where there is none."""
        start = self.skip()
        character = self.text[start : start + 1]
        if character in ("{", "[") and depth < _MAX_DEPTH:
            self.at += 1
            return self._table(depth) if character == "{" else self._items(depth)
        if character == '"':
            text = self._string()
            return None if text is None else Leaf(text, start, self.at)
        word = re.compile(r"[A-Za-z]+").match(self.text, start)
        if word and word[0] in _WORDS:
            self.at = word.end()
            return Leaf(_WORDS[word[0]], start, self.at)
        number = _NUMBER.match(self.text, start)
        if number is None or self.text[number.end() : number.end() + 1].isalnum():
            self.fail()
            return None
        self.at = number.end()
        whole = number[1] is None and number[2] is None
        return Leaf(int(number[0]) if whole else float(number[0]), start, self.at)

    def _string(self) -> str | None:
        written = _STRING.match(self.text, self.at)
        try:
            text = None if written is None else json.loads(written[0], strict=False)
        except json.JSONDecodeError:
            text = None
        if written is None or text is None:
            self.fail()
            return None
        self.at = written.end()
        return str(text)

    def _table(self, depth: int) -> Table:
        fields: dict[str, Node] = {}
        while self._more("}"):
            key = self._string() if self.text[self.at] == '"' else None
            self.skip()
            if key is None or self.text[self.at : self.at + 1] != ":":
                self._resume()
                continue
            self.at += 1
            before = self.at
            value = self.value(depth + 1)
            if value is None:
                fields[key] = Leaf(None, before, before, plain=False)
                self.at = before
                self._resume()
            else:
                fields[key] = value
                self._separate("}")
        return Table(fields)

    def _items(self, depth: int) -> Items:
        nodes: list[Node] = []
        while self._more("]"):
            value = self.value(depth + 1)
            if value is None:
                self._resume()
            else:
                nodes.append(value)
                self._separate("]")
        return Items(tuple(nodes))

    def _more(self, closing: str) -> bool:
        """Whether another member follows; consumes commas and the closing bracket."""
        self.skip()
        while self.text[self.at : self.at + 1] == ",":
            self.at += 1
            self.skip()
        if self.at >= len(self.text):
            self.fail()
            return False
        if self.text[self.at] in "}]":
            if self.text[self.at] != closing:
                self.fail()
            self.at += 1
            return False
        return True

    def _separate(self, closing: str) -> None:
        self.skip()
        following = self.text[self.at : self.at + 1]
        if following not in (",", closing, ""):
            self.fail()

    def _resume(self) -> None:
        """Go on behind what cannot be read: after a comma or line end, or at a bracket."""
        self.fail()
        stop = re.compile(r"[,\n}\]]").search(self.text, self.at)
        at = stop.start() if stop else len(self.text)
        closes = self.text[at : at + 1] in ("}", "]")
        self.at = at if closes and at > self.at else max(at, self.at) + (0 if closes else 1)
