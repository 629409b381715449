"""Calls into libraries that only move configuration: paths, loaders, wrappers, look-ups.

One dispatch for functions and one for methods. What trains is not here.
"""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading import commands, hydra
from infrarsi.reading.externals import environment
from infrarsi.reading.frames import Frame
from infrarsi.reading.loading import loaded
from infrarsi.reading.mappings import as_record, overlaid, wrapped
from infrarsi.reading.paths import path_call, path_method
from infrarsi.reading.values import (
    Bound,
    Instance,
    Known,
    Made,
    Many,
    Record,
    Symbol,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_COPIES = {"copy", "dict", "model_dump", "to_dict", "as_dict", "toDict", "deepcopy", "asdict"}
_PARSED = {"model_validate", "parse_obj", "from_dict", "validate"}
_TYPES = {"builtins.dict": Record, "builtins.list": Many, "builtins.tuple": Many}


def library_value(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    """What a library function gives; None for any that does not move configuration."""
    if name in {"os.environ.get", "os.getenv"} and node.args:
        return _variable(evaluator, node, frame)
    if name in {"builtins.getattr", "builtins.hasattr"} and len(node.args) >= 2:
        return _attribute(evaluator, name, node, frame)
    if name in {"builtins.tuple", "builtins.list"} and len(node.args) == 1:
        listed = evaluator.value(node.args[0], frame)
        return listed if isinstance(listed, Many) else None
    if name == "builtins.isinstance" and len(node.args) == 2:
        return _is_instance(evaluator, node, frame)
    for reader in (path_call, loaded, wrapped, hydra.hydra_call, commands.command_call):
        found = reader(evaluator, name, node, frame)
        if found is not None:
            return found
    return None


def method_value(
    evaluator: "Evaluator", base: Value, name: str, node: ast.Call, frame: Frame
) -> Value | None:
    """What a method of such a value gives; None for any other."""
    match base:
        case Record() if name in {"get", "pop", "setdefault"} and node.args:
            return _looked_up(evaluator, base, node, frame)
        case Record() if name in _COPIES and not node.args:
            return base
        case Known():
            return path_method(evaluator, base, name, node, frame)
        case Instance() if name in _PARSED and len(node.args) == 1:
            data = as_record(evaluator, evaluator.value(node.args[0], frame))
            return overlaid(Instance(base.of), data.fields) if isinstance(data, Record) else None
        case Instance() if name in _COPIES and not node.args:
            return as_record(evaluator, base)
        case Instance() if name == "get" and node.args and base.overlay:
            return _looked_up(evaluator, Record(base.overlay), node, frame)
        case Made(callee=callee) if callee.endswith("yaml.YAML") and name == "load":
            return loaded(evaluator, "ruamel.yaml.YAML.load", node, frame)
        case Made():
            return commands.parser_method(evaluator, base, name, node, frame)
        case _:
            return None


def _variable(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> Value:
    """`os.environ.get("NAME", default)`: what the launch sets, else the default's literal."""
    variable = evaluator.value(node.args[0], frame)
    held = environment(evaluator.launch, variable)
    if held is not None:
        own = held.direct()
        if own is None or own.carrier != "environment":
            return held
        value = evaluator.originate(own)
        return Known(str(value.value), value.origins, value.place)
    default = node.args[1] if len(node.args) > 1 else None
    for keyword in node.keywords:
        default = keyword.value if keyword.arg == "default" else default
    if default is None:
        return Known(None)
    name = variable.value if isinstance(variable, Known) else None
    return evaluator.named(default, frame, name if isinstance(name, str) else "default")


def _attribute(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    from infrarsi.reading.objects import attribute

    base, key = evaluator.value(node.args[0], frame), evaluator.value(node.args[1], frame)
    if not isinstance(base, Record | Instance) or not isinstance(key, Known):
        return None
    wanted = str(key.value)
    found = attribute(evaluator, base, wanted)
    missing = isinstance(found, Bound)
    if name == "builtins.hasattr":
        known = isinstance(base, Record) or not missing
        return Known(not missing) if known else None
    if missing and len(node.args) > 2:
        return evaluator.named(node.args[2], frame, wanted)
    return found


def _is_instance(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> Value | None:
    value, kind = evaluator.value(node.args[0], frame), evaluator.value(node.args[1], frame)
    if not isinstance(kind, Symbol) or not isinstance(value, Record | Many | Known):
        return None
    if kind.name in _TYPES:
        return Known(isinstance(value, _TYPES[kind.name]))
    plain = {"builtins.str": str, "builtins.int": int, "builtins.float": float}
    if isinstance(value, Known) and kind.name in plain:
        return Known(isinstance(value.value, plain[kind.name]))
    return None


def _looked_up(
    evaluator: "Evaluator", record: Record, node: ast.Call, frame: Frame
) -> Value | None:
    key = evaluator.value(node.args[0], frame)
    if not isinstance(key, Known) or not isinstance(key.value, str):
        return None
    if key.value in record.fields:
        return record.fields[key.value]
    if any(document.broken for document in evaluator.project.documents.values()):
        return Unknown(f"`{key.value}` may stand on a line that is half typed")
    default = node.args[1] if len(node.args) > 1 else None
    return Known(None) if default is None else evaluator.named(default, frame, key.value)
