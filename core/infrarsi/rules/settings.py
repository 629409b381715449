"""Named settings of a program, wherever they stand, and which of them an edit changed.

Constants, script arguments, class fields, parameters' defaults, named arguments of configuration
objects, dictionaries and configuration files are settings. A setting is compared under its own
name only: what is renamed or moved elsewhere is not compared.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from infrarsi.frozen import Scalar
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.aliases import normalise
from infrarsi.reading.attached import attached
from infrarsi.reading.documents import Document, Leaf, Node, Table, format_of, parse_document
from infrarsi.reading.externals import literal
from infrarsi.reading.operators import binary, unary
from infrarsi.reading.scopes import Function, Scope, parameters
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import ClassValue, Known, Many, Record, Unknown, Value
from infrarsi.rules.remembered import remembered

_OWN = ("infrarsi.toml", "pyproject.toml", "package.json", "package-lock.json")
_PARSERS = {"parse_args", "parse_known_args"}
_OBJECTS = ("config", "cfg", "args", "arguments", "settings", "params", "namespace", "dict")


@dataclass(frozen=True)
class Setting:
    """A name, where it belongs (`Config.n_layer`, `model.layers`), and what it holds."""

    path: str
    value: Scalar | None
    place: Place | None
    file: str | None = None

    @property
    def name(self) -> str:
        """The last part in lower case with underscores: `n_layer`."""
        return normalise(self.path)

    @property
    def words(self) -> frozenset[str]:
        """The words of the name."""
        return frozenset(self.name.split("_"))


@dataclass(frozen=True)
class ChangedSetting:
    """A setting that holds another value than before."""

    now: Setting
    was: Setting

    @property
    def name(self) -> str:
        """The setting's name."""
        return self.now.name

    @property
    def words(self) -> frozenset[str]:
        """The words of the name."""
        return self.now.words

    @property
    def ratio(self) -> float | None:
        """By what the number was multiplied; None where it is no positive number."""
        now, was = self.now.value, self.was.value
        if not _is_number(now) or not _is_number(was) or not was:
            return None
        return float(now or 0) / float(was)


@remembered
def settings(program: Program) -> dict[str, tuple[Setting, ...]]:
    """All settings by path; a path that is set in several places has several.

    What a call gives a configuration object goes before its class's default.
    """
    found: dict[str, list[Setting]] = {}
    if program.is_followed:
        for setting in _settings(program):
            found.setdefault(setting.path, []).append(setting)
        given: dict[str, list[Setting]] = {}
        for setting in _given(program):
            given.setdefault(setting.path, []).append(setting)
        found |= given
    return {path: tuple(dict.fromkeys(several)) for path, several in found.items()}


@remembered
def changed_settings(now: Program, was: Program) -> tuple[ChangedSetting, ...]:
    """Settings that both sides have, once each, with different values."""
    before = settings(was)
    return tuple(
        ChangedSetting(fresh, old)
        for path, several in settings(now).items()
        for fresh, old in zip(several, before.get(path, ()), strict=False)
        if len(several) == len(before.get(path, ())) and _differ(fresh, old, several)
    )


def _differ(now: Setting, was: Setting, several: tuple[Setting, ...]) -> bool:
    return now.value != was.value and was.value is not None and len(several) < 4


def _settings(program: Program) -> Iterator[Setting]:
    for call in program.called(_PARSERS):
        yield from _arguments(program.evaluator.value(call.site.call, call.frame))
    for scope in program.project.scopes.values():
        yield from _of_scope(scope)
    yield from _of_documents(program)


def _given(program: Program) -> Iterable[Setting]:
    return program.by_file(_given_in)


def _given_in(program: Program, module: Scope) -> Iterator[Setting]:
    for call in program.calls_of(module):
        if _is_configuration(program, call):
            yield from _of_call(program, call.site.call, call.site.scope)


def _arguments(value: Value) -> Iterator[Setting]:
    """Parsed script arguments under the launch line."""
    if isinstance(value, Many) and value.items:
        value = value.items[0]
    if isinstance(value, Record):
        for name, held in value.fields.items():
            yield from _setting(name, held, None)


def _setting(path: str, value: Value, place: Place | None) -> Iterator[Setting]:
    match value:
        case Known(value=scalar):
            yield Setting(path, scalar, value.place or place)
        case Many(items=items) if items and all(isinstance(item, Known) for item in items):
            text = ", ".join(str(item.value) for item in items if isinstance(item, Known))
            yield Setting(path, f"({text})", place)
        case _:
            pass


@attached
def _of_scope(scope: Scope) -> tuple[Setting, ...]:
    return tuple(_literals(scope))


def _literals(scope: Scope) -> Iterator[Setting]:
    """What is written out in a module, in a class, or as a function's defaults."""
    owner = f"{scope.name}." if scope.name else ""
    place = scope.source.place
    if isinstance(scope.node, Function):
        for name, default in parameters(scope.node):
            if default is not None and _plain(default):
                yield from _setting(f"{owner}{name}", _written(default), place(default))
        return
    for name, events in scope.events.items():
        for event in events:
            if event.kind != "assign" or event.value is None or event.path:
                continue
            if _plain(event.value):
                yield from _setting(f"{owner}{name}", _written(event.value), place(event.value))
            elif isinstance(event.value, ast.Dict):
                yield from _of_dictionary(f"{owner}{name}", event.value, scope)


def _of_dictionary(path: str, node: ast.Dict, scope: Scope) -> Iterator[Setting]:
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            continue
        if isinstance(value, ast.Dict):
            yield from _of_dictionary(f"{path}.{key.value}", value, scope)
        elif _plain(value):
            place = scope.source.place(value)
            yield from _setting(f"{path}.{key.value}", _written(value), place)


def _written(node: ast.expr) -> Value:
    """The value of an expression that is written out."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return Known(value)
        case ast.UnaryOp(op=op, operand=operand):
            return unary(op, _written(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return binary(op, _written(left), _written(right))
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return Many(tuple(_written(element) for element in elements))
        case _:
            return Unknown("it is not written out")


def _is_configuration(program: Program, call: Call) -> bool:
    if not call.site.call.keywords:
        return False
    if call.name.lower().endswith(_OBJECTS):
        return True
    value = program.evaluator.value(call.site.call.func, call.frame)
    return isinstance(value, ClassValue)


def _of_call(program: Program, call: ast.Call, scope: Scope) -> Iterator[Setting]:
    owner = unparse(call.func).rpartition(".")[2]
    frame = program.evaluator.frame(scope)
    for keyword in call.keywords:
        if keyword.arg is not None:
            value = program.evaluator.value(keyword.value, frame)
            yield from _setting(f"{owner}.{keyword.arg}", value, scope.source.place(keyword.value))


def _plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List):
        return 0 < len(node.elts) < 12 and all(literal(element) for element in node.elts)
    return literal(node)


def _of_documents(program: Program) -> Iterator[Setting]:
    """Configuration files the launch line or a text in the code names, launch overrides on top."""
    given = dict(_overrides(program))
    for document in _documents(program):
        for path, leaf in _leaves(document.root, ""):
            over = next((key for key in given if path == key or path.endswith(f".{key}")), None)
            value = leaf.value if over is None else _parsed(given[over])
            yield Setting(path, value, document.place(leaf), document.file)


def _documents(program: Program) -> Iterator[Document]:
    given = {arg.rpartition("=")[2].rpartition("/")[2] for arg in program.launch.args}
    sources = program.project.files.values()
    for path in program.sources.paths():
        form = format_of(path)
        name = path.rpartition("/")[2]
        if form is None or name in _OWN or path.startswith("."):
            continue
        text = program.sources.text(path)
        if text is not None and (name in given or any(name in source.text for source in sources)):
            yield parse_document(path, text, form)


def _leaves(node: Node, path: str) -> Iterator[tuple[str, Leaf]]:
    if isinstance(node, Leaf):
        yield path, node
        return
    fields = node.fields if isinstance(node, Table) else dict(enumerate(node.nodes))
    for key, inner in fields.items():
        yield from _leaves(inner, f"{path}.{key}" if path else str(key))


def _overrides(program: Program) -> Iterator[tuple[str, str]]:
    """`section.key=value` and `--section.key=value` of the launch line."""
    for word in program.launch.args:
        key, equals, value = word.lstrip("-+").partition("=")
        if equals and key.replace(".", "").replace("_", "").isalnum():
            yield key, value


def _parsed(text: str) -> Scalar | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "null": None}.get(text.lower(), text)


def _is_number(value: Scalar | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
