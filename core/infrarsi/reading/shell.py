"""Launch files: `launch.sh` and its kin, read as the one command they end up running.

A small part of the shell is understood, enough for what trainers ship: comments, assignments,
`export`, arrays, `${X:-default}`, `set -e`, `cd "$(dirname "$0")"`, `exec`, `"$@"`. Whatever else
stands there is refused with a sentence; nothing is ever run.
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from infrarsi.errors import UsageError
from infrarsi.launch import Launch, parse_words

LAUNCH_FILES = ("launch.sh", "run.sh", "train.sh")
"""Names of launch files beside the script, the first that exists counts."""

_STARTS = re.compile(r"(?:.*/)?(?:python(?:3(?:\.\d+)?)?|torchrun|accelerate|deepspeed)")
_IDLE = {"set", "echo", "printf", "mkdir", "ulimit", ":", "true", "shopt", "umask"}
_KEYWORDS = re.compile(
    r"if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|test|trap|eval|"
    r"\{|\}|!|\[\[?"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_PARAMETER = re.compile(r"\{(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9@*#])(\[[@*]\])?(:?[-=+?][^{}]*)?\}")
_HERE = re.compile(
    r"cd(--)?(dirname(--)?)?(\$0|\$\{0%/\*\}|\$\{?BASH_SOURCE(\[0\])?\}?)(&&pwd(-P)?)?|"
    r"dirname(--)?(\$0|\$\{?BASH_SOURCE(\[0\])?\}?)|"
    r"cd(--)?\$\(dirname(--)?(\$0|\$\{?BASH_SOURCE(\[0\])?\}?)\)(&?>/dev/null(2>&1)?)?&&pwd(-P)?|pwd"
)
_MAX_LENGTH = 100_000


def starts_training(text: str) -> bool:
    """Whether a shell file has a line that looks like the start of a training."""
    lines = (line.split("#")[0] for line in text.splitlines())
    return any(_STARTS.fullmatch(word) for line in lines for word in re.split(r"[\s;&|\"']+", line))


def read_launch_file(name: str, text: str) -> Launch:
    """The launch of a launch file, as if it were started with no arguments.

    Raises:
        LaunchRefused: its line is understood and would disturb what is measured.
        UsageError: it is not understood, starts nothing, or starts more than one command.
    """
    try:
        return _launch_of(text)
    except RecursionError as error:
        raise UsageError(f"{name} is nested too deeply to be read.", _DO) from error
    except UsageError as error:
        error.what = f"{name}: {error.what}"
        error.args = (f"{error.what} {error.do}",)
        raise


_DO = "Keep it to one plain `python` or `torchrun` command with its arguments."


def _launch_of(text: str) -> Launch:
    if len(text) > _MAX_LENGTH or "\0" in text:
        _refuse("it is no short text.")
    shell = _Shell(text.replace("\r\n", "\n"))
    found: list[list[str]] = []
    for words in shell.commands():
        if found and words[0] == "exit":
            break
        found.append(words)
    commands = [words for words in found if words[0] != "exit"]
    if not commands:
        raise UsageError("it starts no `python`, `torchrun`, `accelerate` or `deepspeed`.", _DO)
    if len(commands) > 1:
        _refuse(f"it runs `{commands[1][0]}` besides `{commands[0][0]}`.")
    exported = [f"{name}={value}" for name, value in shell.exported_values().items()]
    return parse_words([*exported, *commands[0]])


class _Shell:
    """Reads the text from front to back and keeps what variables hold."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.values: dict[str, str] = {}
        self.arrays: dict[str, list[str]] = {}
        self.exported: set[str] = set()

    def exported_values(self) -> dict[str, str]:
        """The variables a command inherits."""
        return {name: self.values[name] for name in self.values if name in self.exported}

    def commands(self) -> Iterator[list[str]]:
        """Every command that is neither an assignment nor without effect on a training."""
        while self.at < len(self.text):
            words, assigned = self._command()
            if not words:
                for name, value, is_more in assigned:
                    self._assign(name, value, is_more=is_more)
            else:
                prefix = [f"{name}={value}" for name, value, _ in assigned if value is not None]
                rest = self._plain(words)
                if rest:
                    yield [*prefix, *rest]

    def _command(self) -> tuple[list[str], list[tuple[str, str | None, bool]]]:
        """The words up to the end of a command, and the assignments before them."""
        words: list[str] = []
        assigned: list[tuple[str, str | None, bool]] = []
        while self._skip_blanks():
            character = self.text[self.at]
            if character in "\n;" or self.text.startswith("&&", self.at):
                self.at += 2 if character == "&" else 1
                break
            if character in "|&<>()`":
                if self._drop_output():
                    continue
                _refuse(f"it uses `{character}`, which is not understood.")
            match = _ASSIGNMENT.match(self.text, self.at)
            is_export = words[:1] in (["export"], ["readonly"], ["declare"])
            if match and (not words or is_export):
                self.at = match.end()
                assigned.append(
                    (match[1], self._assigned_value(match[1], match[2]), bool(match[2]))
                )
                if is_export:
                    name, value, more = assigned.pop()
                    self._assign(name, value, is_more=more)
                    words.append(name)
                continue
            words += self._word()
        return words, assigned

    def _plain(self, words: list[str]) -> list[str]:
        """The words of a command that counts, none where it has no effect on a training."""
        match words:
            case ["export", *names]:
                self.exported.update(name for name in names if _NAME.fullmatch(name))
                return []
            case ["readonly" | "declare", *_]:
                return []
            case ["unset", *names]:
                for name in names:
                    self.values.pop(name, None)
                return []
            case ["cd", *folder]:
                if [part for part in folder if part not in ("--", ".", "./")]:
                    _refuse(f"it goes to another folder (`cd {' '.join(folder)}`).")
                return []
            case ["set", first, *_] if not first.startswith(("-", "+")) or first == "--":
                _refuse("it sets its own arguments with `set`.")
            case ["exec", *rest]:
                return rest
            case [first, *_] if _KEYWORDS.fullmatch(first):
                _refuse(f"it uses `{first}`, which is not understood.")
            case [first, *_] if first in _IDLE:
                return []
            case _:
                return words

    def _assign(self, name: str, value: str | None, *, is_more: bool) -> None:
        if value is not None:
            self.values[name] = (self.values.get(name, "") if is_more else "") + value

    def _assigned_value(self, name: str, more: str) -> str | None:
        """The text after `NAME=`; an array is kept by itself."""
        if not self.text.startswith("(", self.at):
            return " ".join(self._word(splits=False)) if self._is_word() else ""
        self.at += 1
        items = list(self.arrays.get(name, [])) if more else []
        while True:
            self._skip_blanks()
            if self.at >= len(self.text):
                _refuse(f"the array {name} is not closed.")
            if self.text[self.at] == ")":
                self.at += 1
                break
            if self.text[self.at] == "\n":
                self.at += 1
                continue
            if self.text[self.at] in "|&;<>(`":
                _refuse(f"the array {name} is not understood.")
            items += self._word()
        self.arrays[name] = items
        return None

    def _skip_blanks(self) -> bool:
        """Pass over blanks, continued lines and comments; whether anything is left."""
        while self.at < len(self.text):
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] in " \t\r":
                self.at += 1
            elif self.text[self.at] == "#" and self.text[self.at - 1 : self.at] in _BEFORE_COMMENT:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _is_word(self) -> bool:
        return self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|<>()"

    def _drop_output(self) -> bool:
        """Pass over `> file`, `2>&1` and the like: where output goes changes no training."""
        match = re.compile(r"(?:&>>?|>>?)[ \t]*(?:&[12]|[\w./-]+)").match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match is not None

    def _word(self, *, splits: bool = True) -> list[str]:
        """One word, expanded: as many words as the shell makes of it."""
        fields: list[str] = [""]
        counts = False
        while self._is_word():
            character = self.text[self.at]
            if character == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    _refuse("a quotation mark is not closed.")
                fields[-1] += self.text[self.at + 1 : end]
                self.at, counts = end + 1, True
            elif character == '"':
                counts = self._quoted(fields) or counts
            elif character == "\\":
                if not self.text.startswith("\\\n", self.at):
                    fields[-1] += self.text[self.at + 1 : self.at + 2]
                    counts = True
                self.at += 2
            elif character in "$`":
                counts = self._unquoted(fields, splits=splits) or counts
            else:
                if character in "*?[{" or (character == "~" and not counts):
                    _refuse(f"it uses the pattern `{character}`.")
                fields[-1] += character
                self.at, counts = self.at + 1, True
        is_descriptor = fields in (["1"], ["2"]) and self.text.startswith(">", self.at)
        return fields if counts and not is_descriptor else []

    def _quoted(self, fields: list[str]) -> bool:
        """A text in double quotes; `"${A[@]}"` becomes one field for each item."""
        self.at += 1
        lists_nothing = False
        while True:
            if self.at >= len(self.text):
                _refuse("a quotation mark is not closed.")
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return not lists_nothing or fields != [""]
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\"):
                fields[-1] += self.text[self.at + 1]
                self.at += 2
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif character in "$`":
                items = self._expansion()
                if isinstance(items, str):
                    fields[-1] += items
                else:
                    lists_nothing = lists_nothing or not items
                    fields[-1] += items[0] if items else ""
                    fields += items[1:]
            else:
                fields[-1] += character
                self.at += 1

    def _unquoted(self, fields: list[str], *, splits: bool) -> bool:
        """An expansion outside quotes: its text is split at blanks. Whether it adds anything."""
        items = self._expansion()
        text = items if isinstance(items, str) else " ".join(items)
        if not splits:
            fields[-1] += text
            return bool(text)
        if re.search(r"[*?\[]", text):
            _refuse("it uses a pattern outside quotes.")
        parts = text.split()
        if parts:
            if text[0].isspace() and fields[-1]:
                fields.append("")
            fields[-1] += parts[0]
            fields += parts[1:]
        return bool(parts)

    def _expansion(self) -> str | list[str]:
        """`$X`, `${X:-y}`, `"$@"`, `$(dirname "$0")`; a list for a whole array."""
        if self.text.startswith("$(", self.at) or self.text[self.at] == "`":
            return self._substitution()
        self.at += 1
        braced = _PARAMETER.match(self.text, self.at)
        if braced is not None:
            self.at = braced.end()
            return self._parameter(braced[2], braced[4] or "", braced[3], count=bool(braced[1]))
        plain = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#]").match(self.text, self.at)
        if plain is None:
            rest = self.text[self.at : self.at + 12].split("\n")[0]
            _refuse(f"`${rest}` is not understood.")
        self.at = plain.end()
        return self._parameter(plain[0], "", None, count=False)

    def _parameter(
        self, name: str, operation: str, index: str | None, *, count: bool
    ) -> str | list[str]:
        if count:
            _refuse(f"`${{#{name}}}` is not understood.")
        if name in {"@", "*"}:
            return []
        if name == "#":
            return "0"
        if index is not None:
            if name not in self.arrays:
                _refuse(f"the array {name} is not set in it.")
            return list(self.arrays[name])
        if name in self.arrays:
            return self.arrays[name][0] if self.arrays[name] else ""
        return self._value(name, operation)

    def _value(self, name: str, operation: str) -> str:
        held = self.values.get(name)
        strict = operation.startswith(":")
        kind, default = operation.lstrip(":")[:1], operation.lstrip(":")[1:]
        is_set = held is not None and (held != "" or not strict)
        if kind == "+":
            return self._default(default) if is_set else ""
        if is_set:
            return held or ""
        if kind in {"-", "="}:
            value = self._default(default)
            if kind == "=":
                self.values[name] = value
            return value
        if name == "0":
            return "launch.sh"
        if name.isdigit():
            _refuse(f"it needs an argument (`${name}`).")
        _refuse(f"`${name}` is not set in it, so its value is not known.")

    def _default(self, text: str) -> str:
        inner = _Shell(f'"{text}"' if '"' not in text and "'" not in text else text)
        inner.values, inner.arrays = self.values, self.arrays
        return " ".join(inner._word(splits=False))

    def _substitution(self) -> str:
        """`$(dirname "$0")` and its variants: the folder of the file, which is the root."""
        start = self.at + 2
        depth, at = 1, start
        while at < len(self.text) and depth:
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            at += 1
        inner = re.sub(r"[\s\"']+", "", self.text[start : at - 1])
        if self.text[self.at] == "`" or depth or _HERE.fullmatch(inner) is None:
            shown = self.text[self.at : at].split("\n")[0][:40]
            _refuse(f"it asks the shell for `{shown}`.")
        self.at = at
        return "."


_BEFORE_COMMENT = {"", " ", "\t", "\n", ";", "\r", "("}


def _refuse(what: str) -> NoReturn:
    raise UsageError(what, _DO)
