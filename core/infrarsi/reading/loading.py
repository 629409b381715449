"""Loading configuration files: `yaml.safe_load(open(path))` and its kin, followed to the values.

Every value keeps the span it has in that file as its origin. Interpolations `${a.b}` of OmegaConf
are resolved where a whole value is one.
"""

import posixpath
import re
from typing import TYPE_CHECKING

from infrarsi.reading.documents import Document, Format, Items, Leaf, Node, format_of
from infrarsi.reading.frames import Frame
from infrarsi.reading.paths import inside, opened_file
from infrarsi.reading.values import Known, Many, Origin, Record, Unknown, Value

if TYPE_CHECKING:
    import ast

    from infrarsi.reading.evaluate import Evaluator

_LOADERS: dict[str, Format] = {
    "yaml.safe_load": "yaml",
    "yaml.load": "yaml",
    "yaml.full_load": "yaml",
    "yaml.unsafe_load": "yaml",
    "yaml.CLoader": "yaml",
    "ruamel.yaml.YAML.load": "yaml",
    "ruamel.yaml.safe_load": "yaml",
    "ruamel.yaml.load": "yaml",
    "omegaconf.OmegaConf.load": "yaml",
    "box.Box.from_yaml": "yaml",
    "box.Box.from_json": "json",
    "json.load": "json",
    "json.loads": "json",
    "orjson.loads": "json",
    "tomllib.load": "toml",
    "tomllib.loads": "toml",
    "tomli.load": "toml",
    "tomli.loads": "toml",
    "toml.load": "toml",
    "toml.loads": "toml",
    "tomlkit.load": "toml",
    "tomlkit.parse": "toml",
}
_FLOAT = re.compile(r"[-+]?(\d[\d_]*)?\.?\d+[eE][-+]?\d+|[-+]?\d[\d_]*\.?[eE][-+]?\d+")


def loaded(evaluator: "Evaluator", name: str, node: "ast.Call", frame: Frame) -> Value | None:
    """What a loader's call gives; None where the call loads nothing, or no file that is there."""
    form = _LOADERS.get(name)
    if form is None:
        return None
    first = node.args[0] if node.args else None
    for keyword in node.keywords:
        if first is None and keyword.arg in {"stream", "fp", "f", "s", "file_", "filename"}:
            first = keyword.value
    if first is None:
        return None
    value = evaluator.value(first, frame)
    file = opened_file(evaluator, value)
    if file is None:
        return Unknown("it is loaded from a file that is not found")
    modern = name.startswith("omegaconf.")
    return file_value(evaluator, file, form, modern=modern) or Unknown("its file cannot be read")


def file_value(
    evaluator: "Evaluator", file: str, form: Format | None = None, *, modern: bool = False
) -> Value | None:
    """A configuration file's content; `modern` reads `1e-4` in YAML as a number, as OmegaConf."""
    form = form or format_of(file)
    path = inside(evaluator, file)
    document = evaluator.project.document(path, form) if path and form else None
    if document is None:
        return None
    return node_value(evaluator, document, document.root, "", modern=modern)


def node_value(
    evaluator: "Evaluator", document: Document, node: Node, name: str, *, modern: bool
) -> Value:
    """A node of a document as a value; `name` is its dotted path there."""
    if isinstance(node, Leaf):
        return _leaf_value(evaluator, document, node, name, modern=modern)
    prefix = f"{name}." if name else ""
    if isinstance(node, Items):
        return Many(
            tuple(
                node_value(evaluator, document, inner, f"{prefix}{index}", modern=modern)
                for index, inner in enumerate(node.nodes)
            )
        )
    return Record(
        {
            key: node_value(evaluator, document, inner, f"{prefix}{key}", modern=modern)
            for key, inner in node.fields.items()
        }
    )


def _leaf_value(
    evaluator: "Evaluator", document: Document, leaf: Leaf, name: str, *, modern: bool
) -> Value:
    if not leaf.plain:
        return Unknown(f"`{name}` in {document.file} is no plain number or text")
    value = leaf.value
    if modern and isinstance(value, str) and _FLOAT.fullmatch(value):
        value = float(value)
    place = document.place(leaf)
    if value is None:
        return Known(None, (), place)
    return evaluator.originate(Origin(document.format, name, value, document.file, place))


def named_documents(evaluator: "Evaluator") -> None:
    """Look at every loader's call and every file the launch line names, used or not."""
    loaders = {name.rpartition(".")[2] for name in _LOADERS}
    for name in loaders:
        for site in evaluator.project.calls_by_name.get(name, []):
            evaluator.value(site.call, evaluator.frame(site.scope))
    for word in evaluator.launch.args:
        text = word.partition("=")[2] if word.startswith("-") else word
        form = format_of(text)
        path = inside(evaluator, text) if form is not None else None
        if path is not None and form is not None:
            evaluator.project.document(path, form)


def beside_script(evaluator: "Evaluator", path: str) -> str:
    """A path that is meant relative to the script's folder, as the workspace names it."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(evaluator.launch.script), path))


def resolve(value: Value, root: Value, depth: int = 0) -> Value:
    """The value with interpolations `${a.b}` and `${oc.env:X,default}` of its texts filled in."""
    match value:
        case Record(fields=fields) if depth < 30:
            return Record({key: resolve(inner, root, depth + 1) for key, inner in fields.items()})
        case Many(items=items) if depth < 30:
            return Many(tuple(resolve(inner, root, depth + 1) for inner in items))
        case Known(value=str(text)) if "${" in text:
            whole = re.fullmatch(r"\$\{([\w.]+)\}", text.strip())
            found = _at(root, whole[1]) if whole and depth < 30 else None
            if found is None:
                return Unknown(f"`{text}` is filled in at run time")
            return resolve(found, root, depth + 1)
        case _:
            return value


def _at(root: Value, path: str) -> Value | None:
    value: Value | None = root
    for key in path.split("."):
        match value:
            case Record(fields=fields):
                value = fields.get(key)
            case _:
                return None
    return value
