"""Calls of other libraries whose result can be told from the launch line alone."""

import ast
import builtins
import math
from collections.abc import Callable, Mapping
from typing import Any

from infrarsi.launch import Launch
from infrarsi.reading.operators import computed
from infrarsi.reading.values import Known, Many, Origin, Record, Unknown, Value, merge_origins

_SCALAR: dict[str, Callable[..., Any]] = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.str": str,
    "builtins.bool": bool,
    "builtins.abs": abs,
    "builtins.round": round,
    "builtins.max": max,
    "builtins.min": min,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.prod": math.prod,
    "math.sqrt": math.sqrt,
}
_WORLD = {"torch.distributed.get_world_size"}
_RANK = {"torch.distributed.get_rank", "torch.distributed.get_node_local_rank"}
_INITIALISED = {"torch.distributed.is_initialized", "torch.distributed.is_torchelastic_launched"}


def call_external(
    name: str, launch: Launch, args: tuple[Value, ...], keywords: Mapping[str, Value]
) -> Value | None:
    """What a library call gives under this launch, seen from rank 0; None where not known."""
    if name in _SCALAR and args and not keywords:
        return _scalar(_SCALAR[name], args)
    first = next(iter(args), None)
    if name in {"os.environ.get", "os.getenv"} and first is not None:
        default = args[1] if len(args) > 1 else keywords.get("default", Known(None))
        return environment(launch, first) or default
    if name in _WORLD:
        return _launcher("world_size", launch.n_processes)
    if name in _RANK:
        return Known(0)
    if name in _INITIALISED:
        return Known(launch.launcher == "torchrun")
    if name == "builtins.len" and isinstance(first, Many):
        return Known(len(first.items), merge_origins(first.items))
    if name == "builtins.vars" and isinstance(first, Record):
        return first
    if name in {"builtins.dict", "types.SimpleNamespace", "argparse.Namespace"} and not args:
        return Record(dict(keywords))
    return None


def environment(launch: Launch, variable: Value) -> Known | None:
    """The variable's value under this launch; None where the launch does not set it."""
    if not isinstance(variable, Known) or not isinstance(variable.value, str):
        return None
    name = variable.value
    ranks = {"RANK": 0, "LOCAL_RANK": 0, "GROUP_RANK": 0}
    if launch.launcher == "torchrun":
        if name in {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}:
            return _launcher("world_size", str(launch.n_processes))
        if name in ranks:
            return Known(str(ranks[name]))
    if name in launch.env:
        value = launch.env[name]
        return Known(value, (Origin(carrier="environment", name=name, value=value),))
    return None


def is_builtin(name: str) -> bool:
    """Whether Python itself defines the name."""
    return hasattr(builtins, name)


def literal(node: ast.expr) -> bool:
    """Whether the expression is written out: constants and arithmetic on them."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return literal(operand)
        case ast.BinOp(left=left, right=right):
            return literal(left) and literal(right)
        case _:
            return False


def _scalar(function: Callable[..., Any], args: tuple[Value, ...]) -> Value:
    only = args[0] if len(args) == 1 else None
    many = isinstance(only, Many)
    items = only.items if isinstance(only, Many) else args
    values: list[Any] = []
    for item in items:
        if not isinstance(item, Known):
            return item if isinstance(item, Unknown) else Unknown("it is no plain number")
        values.append(item.value)
    return computed(lambda: function(values) if many else function(*values), *items)


def _launcher(name: str, value: int | str) -> Known:
    return Known(value, (Origin(carrier="launcher", name=name, value=value),))
