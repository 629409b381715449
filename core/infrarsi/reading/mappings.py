"""Named values joined, wrapped and changed: `update`, `{**a, **b}`, namespaces, dataclasses.

Wrappers that only give access by attribute (`SimpleNamespace(**cfg)`, `Box(cfg)`,
`OmegaConf.create(cfg)`) are the mapping itself.
"""

import ast
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from infrarsi.reading.frames import Frame
from infrarsi.reading.merges import Merge, is_same
from infrarsi.reading.scopes import Scope, guards_around
from infrarsi.reading.values import (
    ClassValue,
    Instance,
    Known,
    Many,
    Record,
    Symbol,
    Unknown,
    Value,
    same_value,
)
from infrarsi.reading.walking import walk

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_WRAPPERS = {
    "builtins.dict",
    "types.SimpleNamespace",
    "argparse.Namespace",
    "copy.copy",
    "copy.deepcopy",
    "collections.OrderedDict",
    "collections.defaultdict",
    "types.MappingProxyType",
    "omegaconf.OmegaConf.create",
    "omegaconf.OmegaConf.to_container",
    "omegaconf.OmegaConf.to_object",
    "omegaconf.DictConfig",
    "box.Box",
    "box.ConfigBox",
    "easydict.EasyDict",
    "munch.Munch",
    "munch.munchify",
    "munch.DefaultMunch.fromDict",
    "munch.Munch.fromDict",
    "addict.Dict",
    "dotmap.DotMap",
    "dotted_dict.DottedDict",
    "attrdict.AttrDict",
    "ml_collections.ConfigDict",
    "ml_collections.FrozenConfigDict",
    "ml_collections.config_dict.ConfigDict",
    "jsonargparse.Namespace",
    "jsonargparse.dict_to_namespace",
    "dataclasses.asdict",
    "builtins.vars",
}
_FIELDS = {
    "dataclasses.field",
    "pydantic.Field",
    "attr.ib",
    "attrs.field",
    "attr.field",
    "simple_parsing.field",
    "transformers.HfArg",
    "transformers.hf_argparser.HfArg",
}
_MAX_DEPTH = 5
_IN_PLACE = "it is changed by something that is not followed"


def wrapped(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    """What a wrapper, a joining call or a dataclass field gives; None for any other call."""
    if name in _FIELDS:
        return _field_default(evaluator, node, frame)
    if name in {"omegaconf.OmegaConf.merge", "omegaconf.OmegaConf.unsafe_merge"}:
        parts = [evaluator.value(argument, frame) for argument in node.args]
        return joined_records([as_record(evaluator, part) for part in parts], deep=True)
    if name in {"omegaconf.OmegaConf.structured", "hydra.utils.instantiate"} and node.args:
        value = evaluator.value(node.args[0], frame)
        return Instance(value) if isinstance(value, ClassValue) else value
    if name in {"dacite.from_dict", "dacite.core.from_dict"}:
        return _from_dict(evaluator, node, frame)
    if name == "dataclasses.replace" and node.args:
        base = evaluator.value(node.args[0], frame)
        given = _keywords(evaluator, node, frame)
        return overlaid(base, given) if given is not None else Unknown(_IN_PLACE)
    if name not in _WRAPPERS:
        return None
    return _wrapped(evaluator, node, frame)


def made_mapping(
    evaluator: "Evaluator", of: ClassValue, node: ast.Call, frame: Frame
) -> Value | None:
    """What a class of the workspace that is a dictionary holds when made; None for others."""
    definition = of.scope.node
    bases = definition.bases if isinstance(definition, ast.ClassDef) else []
    if not any(_is_mapping(evaluator.value(base, of.closure)) for base in bases):
        return None
    held = _wrapped(evaluator, node, frame)
    return held if isinstance(held, Record | Unknown) else None


def _is_mapping(base: Value) -> bool:
    return isinstance(base, Symbol) and base.name in {"builtins.dict", *_WRAPPERS}


def joined_records(parts: Sequence[Value], *, deep: bool = False) -> Value:
    """The mappings joined, later ones first; unknown where one of them is."""
    fields: dict[str, Value] = {}
    for part in parts:
        if isinstance(part, Instance):
            return part if len(parts) == 1 else Unknown(_IN_PLACE)
        if not isinstance(part, Record):
            return part if isinstance(part, Unknown) else Unknown(_IN_PLACE)
        for key, value in part.fields.items():
            old = fields.get(key)
            if deep and isinstance(old, Record) and isinstance(value, Record):
                value = joined_records([old, value], deep=True)
            fields[key] = value
    return Record(fields)


def overlaid(base: Value, fields: Mapping[str, Value], *, deep: bool = False) -> Value:
    """The mapping or object with these named values over its own."""
    if not fields:
        return base
    match base:
        case Record():
            return joined_records([base, Record(fields)], deep=deep)
        case Instance(of=of, call=call, frame=frame, overlay=held):
            both = joined_records([Record(held), Record(fields)], deep=deep)
            return Instance(of, call, frame, both.fields if isinstance(both, Record) else {})
        case Unknown():
            return base
        case _:
            return base


def as_record(evaluator: "Evaluator", value: Value, depth: int = 0) -> Value:
    """An object of a dataclass as its fields; any other value as it is."""
    if depth > _MAX_DEPTH:
        return Unknown("its class is nested too deeply")
    if isinstance(value, ClassValue):
        value = Instance(value)
    if not isinstance(value, Instance):
        return value
    from infrarsi.reading.objects import member

    names = [*field_names(evaluator, value.of), *value.overlay]
    fields = {name: member(evaluator, value, name) for name in dict.fromkeys(names)}
    return Record({name: as_record(evaluator, held, depth + 1) for name, held in fields.items()})


def field_names(evaluator: "Evaluator", of: ClassValue, depth: int = 0) -> list[str]:
    """The annotated fields of a class and of the workspace's classes it derives from."""
    names: list[str] = []
    node = of.scope.node
    for base in node.bases if isinstance(node, ast.ClassDef) else []:
        value = evaluator.value(base, of.closure)
        if isinstance(value, ClassValue) and depth < _MAX_DEPTH:
            names += field_names(evaluator, value, depth + 1)
    own = [
        name
        for name, events in of.scope.events.items()
        if "." not in name and any(isinstance(e.node, ast.AnnAssign) for e in events)
    ]
    return list(dict.fromkeys([*names, *own]))


def changed(
    evaluator: "Evaluator",
    value: Value,
    name: str,
    frame: Frame,
    at: ast.expr | None,
    since: tuple[int, int],
) -> Value:
    """The value after what statements of its scope put into it, up to where `at` stands."""
    merges = frame.scope.merges.get(name, ())
    used = (at.lineno, at.col_offset) if at is not None else None
    for merge in merges:
        start = (merge.node.lineno, merge.node.col_offset)
        if start >= since and (used is None or merge.end <= used):
            value = _changed_by(evaluator, value, merge, frame)
    return value


def put_by_constructor(
    evaluator: "Evaluator", instance: Instance, method: Scope, name: str
) -> Value | None:
    """What a method puts into `self` under a name from another mapping."""
    merges = method.merges.get("self", ())
    if not merges:
        return None
    from infrarsi.reading.objects import method_frame

    frame = method_frame(evaluator, instance, method)
    found: Value | None = None
    for merge in merges:
        put = _put(evaluator, merge, frame)
        if isinstance(put, Record) and name in put.fields:
            found = put.fields[name]
    return found


@functools.lru_cache(maxsize=2048)
def gives_back(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The parameter of a recursive function that only wraps mappings for access by attribute."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    arguments = [a for a in arguments if a.arg not in {"self", "cls"}]
    own = function.name
    nodes = list(walk(function))
    recursive = any(isinstance(n, ast.Call) and _last(n.func) == own for n in nodes)
    if not arguments or not recursive:
        return None
    parameter = arguments[0].arg
    returns = [n.value for n in nodes if isinstance(n, ast.Return)]
    if not returns or not any(isinstance(r, ast.Name) and r.id == parameter for r in returns):
        return None
    sure = all(r is not None and _is_converted(r, parameter, own) for r in returns)
    return parameter if sure else None


def _is_converted(node: ast.expr, parameter: str, own: str) -> bool:
    match node:
        case ast.Name(id=name):
            return name == parameter
        case ast.IfExp(body=body, orelse=orelse):
            return _is_converted(body, parameter, own) and _is_converted(orelse, parameter, own)
        case ast.DictComp(value=value, generators=[ast.comprehension(target=target, ifs=[])]):
            item = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else None
            return isinstance(item, ast.Name) and is_same(value, item.id, own)
        case (
            ast.ListComp(elt=elt, generators=[only]) | ast.GeneratorExp(elt=elt, generators=[only])
        ):
            return isinstance(only.target, ast.Name) and is_same(elt, only.target.id, own)
        case ast.Call(args=[argument], keywords=[]):
            return _is_converted(argument, parameter, own)
        case ast.Call(args=[], keywords=[ast.keyword(arg=None, value=value)]):
            return _is_converted(value, parameter, own)
        case _:
            return False


def _changed_by(evaluator: "Evaluator", value: Value, merge: Merge, frame: Frame) -> Value:
    if not isinstance(value, Record | Instance):
        return value
    holds = evaluator.hold(guards_around(frame.scope, merge.node), frame)
    if holds is False:
        return value
    put = _put(evaluator, merge, frame)
    if not isinstance(put, Record):
        return Unknown(put.reason if isinstance(put, Unknown) else _IN_PLACE)
    if holds is None:
        put = _uncertain(evaluator, value, put)
    return overlaid(value, put.fields, deep=merge.deep or merge.is_dotted or bool(merge.path))


def _uncertain(evaluator: "Evaluator", value: Value, put: Record) -> Record:
    held = as_record(evaluator, value)
    fields = held.fields if isinstance(held, Record) else {}
    why = Unknown("it depends on a condition that is not known")
    return Record(
        {
            key: new if key in fields and same_value(fields[key], new) else why
            for key, new in put.fields.items()
        }
    )


def _put(evaluator: "Evaluator", merge: Merge, frame: Frame) -> Value:
    """The fields a statement puts in, under the keys it names."""
    if merge.is_dotted:
        put: Value = _dotted(evaluator, evaluator.value(merge.value, frame))
    elif merge.key is not None:
        put = Record({merge.key: evaluator.named(merge.value, frame, merge.key)})
    else:
        put = as_record(evaluator, evaluator.value(merge.value, frame))
        if isinstance(put, Record) and merge.skips_none:
            put = Record({k: v for k, v in put.fields.items() if not _is_none(v)})
        if isinstance(put, Record) and not merge.sure:
            why = Unknown("it is set in a loop that is not followed")
            put = Record(dict.fromkeys(put.fields, why))
    for key in reversed(merge.path):
        put = Record({key: put})
    return put


def _dotted(evaluator: "Evaluator", words: Value) -> Value:
    """Words such as `optim.lr=0.1`, each a value under its dotted name."""
    from infrarsi.reading.hydra import overrides_record

    texts = [
        word.value if isinstance(word, Known) else None
        for word in (words.items if isinstance(words, Many) else (words,))
    ]
    known = [text.lstrip("-") for text in texts if isinstance(text, str)]
    if len(known) != len(texts):
        return Unknown("which words of the launch line change it is not known")
    return overrides_record(evaluator, tuple(known))


def _is_none(value: Value) -> bool:
    return isinstance(value, Known) and value.value is None


def _field_default(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> Value:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    default = keywords.get("default")
    if default is None and node.args:
        default = node.args[0]
    if default is not None:
        return evaluator.named(default, frame, "default")
    factory = keywords.get("default_factory") or keywords.get("factory")
    if factory is None:
        return Unknown("its field has no default")
    return made_by(evaluator, factory, frame)


def made_by(evaluator: "Evaluator", factory: ast.expr, frame: Frame) -> Value:
    """What a factory without arguments gives."""
    from infrarsi.reading.calls import enter
    from infrarsi.reading.values import FunctionValue

    made = evaluator.value(factory, frame)
    match made:
        case ClassValue():
            return Instance(made)
        case FunctionValue():
            call = ast.copy_location(ast.Call(factory, [], []), factory)
            return enter(evaluator, made, call, frame)
        case Symbol(name="builtins.dict"):
            return Record({})
        case Symbol(name="builtins.list" | "builtins.tuple"):
            return Many(())
        case _:
            return Unknown("its default is made in a way that is not followed")


def _wrapped(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> Value | None:
    positional = [a for a in node.args if not isinstance(a, ast.Starred)]
    given = _keywords(evaluator, node, frame)
    if not positional:
        return Unknown(_IN_PLACE) if given is None else Record(given)
    value = evaluator.value(positional[0], frame)
    if not isinstance(value, Record | Instance | Many):
        return value if isinstance(value, Unknown) else None
    options = {"resolve", "throw_on_missing", "default_box", "box_dots", "structured_config_mode"}
    extra = {key: v for key, v in (given or {}).items() if key not in options}
    return overlaid(value, extra)


def _keywords(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> dict[str, Value] | None:
    """The named arguments of a call, `**` spread out; None where one is not followed."""
    fields: dict[str, Value] = {}
    for keyword in node.keywords:
        if keyword.arg is not None:
            fields[keyword.arg] = evaluator.named(keyword.value, frame, keyword.arg)
            continue
        spread = as_record(evaluator, evaluator.value(keyword.value, frame))
        if not isinstance(spread, Record):
            return None
        fields |= spread.fields
    return fields


def _from_dict(evaluator: "Evaluator", node: ast.Call, frame: Frame) -> Value:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    given = [*node.args, *(keywords[k] for k in ("data_class", "data") if k in keywords)]
    if len(given) < 2:
        return Unknown(_IN_PLACE)
    of, data = evaluator.value(given[0], frame), evaluator.value(given[1], frame)
    if not isinstance(of, ClassValue) or not isinstance(data, Record):
        return Unknown(_IN_PLACE)
    return overlaid(Instance(of), data.fields)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
