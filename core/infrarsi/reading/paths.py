"""Paths as texts: what `os.path` and `pathlib` make of them, and which file of the workspace it is.

A path is known by its text, relative to the workspace root, where the job is started. `__file__`
is the script's own path there, so that what is joined to its folder is found too.
"""

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from infrarsi.reading.frames import Frame
from infrarsi.reading.values import Known, Made, Unknown, Value, merge_origins

if TYPE_CHECKING:
    import ast

    from infrarsi.reading.evaluate import Evaluator

_CLASSES = {"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath"}
_SAME = {"resolve", "absolute", "expanduser", "as_posix"}
_FUNCTIONS: dict[str, Callable[[str], str]] = {
    "os.path.dirname": posixpath.dirname,
    "os.path.basename": posixpath.basename,
    "os.path.normpath": posixpath.normpath,
    "os.path.abspath": posixpath.normpath,
    "os.path.realpath": posixpath.normpath,
    "os.path.expanduser": str,
    "os.path.expandvars": str,
    "os.fspath": str,
    "hydra.utils.to_absolute_path": str,
}
_OPENERS = {"builtins.open", "io.open", "codecs.open", "pathlib.Path.open", "os.fdopen"}
_READERS = {"read", "read_text", "read_bytes", "readlines"}


def path_call(evaluator: "Evaluator", name: str, node: "ast.Call", frame: Frame) -> Value | None:
    """What a function of `os.path`, or a path's constructor, gives; None for any other."""
    if name in _CLASSES or name == "os.path.join":
        return joined(*(evaluator.value(part, frame) for part in node.args))
    if name in {"os.getcwd", "pathlib.Path.cwd"}:
        return Known("")
    if len(node.args) != 1:
        return None
    if name in {"os.path.exists", "os.path.isfile"}:
        return _exists(evaluator, evaluator.value(node.args[0], frame))
    apply = _FUNCTIONS.get(name)
    return _mapped(evaluator.value(node.args[0], frame), apply) if apply is not None else None


def path_attribute(base: Known, name: str) -> Value | None:
    """`path.parent`, `path.name` and the like, None for any other."""
    if not isinstance(base.value, str):
        return None
    match name:
        case "parent":
            return _mapped(base, lambda text: posixpath.dirname(text.rstrip("/")))
        case "name":
            return _mapped(base, posixpath.basename)
        case "stem":
            return _mapped(base, lambda text: posixpath.splitext(posixpath.basename(text))[0])
        case "suffix":
            return _mapped(base, lambda text: posixpath.splitext(text)[1])
        case _:
            return None


def path_method(
    evaluator: "Evaluator", base: Value, name: str, node: "ast.Call", frame: Frame
) -> Value | None:
    """A path's own method, as far as its text tells; None for any other."""
    if not isinstance(base, Known) or not isinstance(base.value, str):
        return None
    if name in _SAME:
        return base
    if name == "joinpath":
        return joined(base, *(evaluator.value(part, frame) for part in node.args))
    if name in {"exists", "is_file"}:
        return _exists(evaluator, base)
    if name in {"with_suffix", "with_name"} and len(node.args) == 1:
        given = evaluator.value(node.args[0], frame)
        if isinstance(given, Known) and isinstance(given.value, str):
            head, tail = posixpath.split(base.value)
            stem = posixpath.splitext(tail)[0] if name == "with_suffix" else ""
            return Known(posixpath.join(head, stem + given.value), base.origins)
    if name == "open" or name in _READERS:
        return Made(f"pathlib.Path.{name}", node, frame)
    return None


def joined(*parts: Value) -> Value:
    """The parts as one path."""
    texts = [part.value if isinstance(part, Known) else None for part in parts]
    known = [text for text in texts if isinstance(text, str)]
    if len(known) != len(parts):
        unknown = next((part for part in parts if isinstance(part, Unknown)), None)
        return unknown or Unknown("it is a path that is not followed")
    return Known(posixpath.join("", *known), merge_origins(parts))


def opened_file(evaluator: "Evaluator", value: Value) -> str | None:
    """The workspace file a path, an open file or a file's text stands for."""
    if isinstance(value, Known):
        return inside(evaluator, value.value) if isinstance(value.value, str) else None
    if not isinstance(value, Made):
        return None
    callee, call, frame = value.callee, value.call, value.frame
    owner = getattr(call.func, "value", None)
    if callee in _OPENERS and callee != "pathlib.Path.open" and call.args:
        return opened_file(evaluator, evaluator.value(call.args[0], frame))
    is_method = callee.startswith("pathlib.Path.") or callee.rpartition(".")[2] in _READERS
    if is_method and owner is not None:
        return opened_file(evaluator, evaluator.value(owner, frame))
    return None


def inside(evaluator: "Evaluator", path: str) -> str | None:
    """The path as the workspace names it, None where there is no such text file."""
    if "\0" in path or len(path) > 1000:
        return None
    normal = posixpath.normpath(path)
    return normal if evaluator.project.text(normal) is not None else None


def _exists(evaluator: "Evaluator", path: Value) -> Value:
    text = path.value if isinstance(path, Known) else None
    if isinstance(text, str) and inside(evaluator, text) is not None:
        return Known(True)
    return Unknown("whether that file is there when the job runs is not known")


def _mapped(value: Value, function: Callable[[str], str]) -> Value:
    if not isinstance(value, Known) or not isinstance(value.value, str):
        return value if isinstance(value, Unknown) else Unknown("it is a path not followed")
    return Known(function(value.value), value.origins)
