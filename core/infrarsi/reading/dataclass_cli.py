"""Command lines made from dataclasses: `tyro.cli(Config)`, `HfArgumentParser(...)` and their kin.

Every flag that names a field is put over the object's own value. A library's class of arguments
is given back as if it had been called with the flags as keywords.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from infrarsi.reading.flags import (
    Flag,
    annotated_kind,
    flag_value,
    given_flags,
    kind_of,
)
from infrarsi.reading.frames import Frame
from infrarsi.reading.loading import file_value
from infrarsi.reading.mappings import as_record, field_names, overlaid
from infrarsi.reading.paths import opened_file
from infrarsi.reading.values import (
    ClassValue,
    Instance,
    Known,
    Made,
    Many,
    Origin,
    Record,
    Symbol,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_CLIS = {
    "tyro.cli",
    "simple_parsing.parse",
    "draccus.parse",
    "pyrallis.parse",
    "jsonargparse.CLI",
    "jsonargparse.auto_cli",
    "chz.entrypoint",
    "datargs.parse",
}
_CONFIG_FLAGS = ("config", "config_path", "config_file", "yaml_config")


def dataclass_call(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    """What such a call gives for a class of the workspace; None for any other call."""
    if name not in _CLIS:
        return None
    first = node.args[0] if node.args else None
    for keyword in node.keywords:
        first = keyword.value if keyword.arg == "config_class" else first
    of = evaluator.value(first, frame) if first is not None else None
    if not isinstance(of, ClassValue | Instance):
        return None
    return configured(evaluator, Instance(of) if isinstance(of, ClassValue) else of)


def configured(evaluator: "Evaluator", value: Value) -> Value:
    """An object with what a named config file and the flags of the launch line put over it."""
    flags = given_flags(evaluator.launch.args, _bare(evaluator, value))
    value = over_file(evaluator, value, flags)
    for name, flag in flags.items():
        value = put_flag(evaluator, value, name.split("."), flag) or value
    return value


def over_file(evaluator: "Evaluator", value: Value, flags: Mapping[str, Flag]) -> Value:
    """The value with the content of the file that `--config` names over it."""
    for name in _CONFIG_FLAGS:
        flag = flags.get(name)
        content = file_value(evaluator, flag.text) if flag and flag.text else None
        if isinstance(content, Record):
            value = overlaid(value, _nested(evaluator, value, content), deep=True)
    return value


def put_flag(evaluator: "Evaluator", value: Value, keys: list[str], flag: Flag) -> Value | None:
    """The value with one flag put at its dotted name; None where it has no such field."""
    key, rest = keys[0], keys[1:]
    held = _held(evaluator, value, key)
    if held is None and not rest and key.startswith("no"):
        key = key.removeprefix("no").lstrip("_")
        held = _held(evaluator, value, key)
        if held is not None and kind_of(held) is bool:
            origin = Origin("argument", flag.written, False)
            return overlaid(value, {key: evaluator.originate(origin)})
        return None
    if held is None:
        return None
    if rest:
        inner = put_flag(evaluator, held, rest, flag)
        return None if inner is None else overlaid(value, {key: inner})
    if isinstance(held, Record | Instance):
        return None
    kind = _kind(evaluator, value, key) or kind_of(held)
    return overlaid(value, {key: flag_value(evaluator, flag, kind)})


def parser_value(
    evaluator: "Evaluator", parser: Made, name: str, node: ast.Call, frame: Frame
) -> Value | None:
    """What a method of `HfArgumentParser` gives; None for any other method."""
    methods = {"parse_args_into_dataclasses", "parse_json_file", "parse_yaml_file", "parse_dict"}
    if name not in methods or not parser.call.args:
        return None
    given = evaluator.value(parser.call.args[0], parser.frame)
    classes: list[Value] = [*given.items] if isinstance(given, Many) else [given]
    if name == "parse_args_into_dataclasses":
        flags = given_flags(evaluator.launch.args)
        fields = {k: flag_value(evaluator, f, None) for k, f in flags.items()}
        made = [
            configured(evaluator, Instance(of))
            if isinstance(of, ClassValue)
            else _made(evaluator, of, fields, classes, node, frame)
            for of in classes
        ]
        rest: list[Value] = [Unknown("the remaining arguments")]
        extra = any(k.arg == "return_remaining_strings" for k in node.keywords)
        return Many(tuple([*made, *rest] if extra else made))
    source = next(
        iter([*node.args, *(k.value for k in node.keywords if k.arg != "allow_extra_keys")]), None
    )
    content = _content(evaluator, source, frame, name) if source is not None else None
    if not isinstance(content, Record):
        return Many(tuple(Unknown("its arguments are in a file not found") for _ in classes))
    made = [
        overlaid(Instance(of), _own(evaluator, of, content))
        if isinstance(of, ClassValue)
        else _made(evaluator, of, content.fields, classes, node, frame)
        for of in classes
    ]
    return Many(tuple(made))


def _content(evaluator: "Evaluator", node: ast.expr, frame: Frame, name: str) -> Value | None:
    value = evaluator.value(node, frame)
    if name == "parse_dict":
        return value
    file = opened_file(evaluator, value)
    return None if file is None else file_value(evaluator, file)


def _made(
    evaluator: "Evaluator",
    of: Value,
    fields: Mapping[str, Value],
    classes: list[Value],
    node: ast.Call,
    frame: Frame,
) -> Value:
    """A library's arguments as a call with those keywords that no class of the workspace takes."""
    if not isinstance(of, Symbol):
        return Unknown("its class is not followed")
    taken = {n for c in classes if isinstance(c, ClassValue) for n in field_names(evaluator, c)}
    keywords: list[ast.keyword] = []
    for key, value in fields.items():
        if key not in taken:
            stands_for = ast.copy_location(ast.Name(key, ast.Load()), node)
            evaluator.preset(stands_for, frame, value)
            keywords.append(ast.keyword(key, stands_for))
    call = ast.copy_location(ast.Call(node.func, [], keywords), node)
    return Made(of.name, call, frame)


def _own(evaluator: "Evaluator", of: ClassValue, content: Record) -> dict[str, Value]:
    names = field_names(evaluator, of)
    return {key: value for key, value in content.fields.items() if key in names}


def _nested(evaluator: "Evaluator", value: Value, content: Record) -> dict[str, Value]:
    """A file's content with tables over the objects they belong to."""
    fields: dict[str, Value] = {}
    for key, given in content.fields.items():
        held = _held(evaluator, value, key)
        if isinstance(held, Instance) and isinstance(given, Record):
            given = overlaid(held, _nested(evaluator, held, given))
        fields[key] = given
    return fields


def _held(evaluator: "Evaluator", value: Value, key: str) -> Value | None:
    """What the mapping or object has under a name, None where it has no such field."""
    from infrarsi.reading.objects import member

    match value:
        case Record(fields=fields):
            return fields.get(key)
        case Instance(of=of, overlay=overlay):
            if key not in overlay and key not in field_names(evaluator, of):
                return None
            return member(evaluator, value, key)
        case _:
            return None


def _kind(evaluator: "Evaluator", value: Value, key: str) -> type | None:
    if not isinstance(value, Instance):
        return None
    for event in value.of.scope.events.get(key, []):
        if isinstance(event.node, ast.AnnAssign):
            return annotated_kind(evaluator, event.node.annotation, value.of.closure)
    return None


def _bare(evaluator: "Evaluator", value: Value) -> set[str]:
    """Dotted names of the fields that are truth values: their flags stand alone."""
    return set(_truths(as_record(evaluator, value), ""))


def _truths(value: Value, prefix: str) -> Iterator[str]:
    for key, inner in value.fields.items() if isinstance(value, Record) else ():
        if isinstance(inner, Record):
            yield from _truths(inner, f"{prefix}{key}.")
        elif isinstance(inner, Known) and isinstance(inner.value, bool):
            yield f"{prefix}{key}"
