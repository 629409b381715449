"""Loader classes of the workspace: what their parent, a library's loader, is constructed with."""

import ast
from collections.abc import Iterator

from infrarsi.reading.calls import entered_frame
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.frames import Frame
from infrarsi.reading.scopes import Function
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import ClassValue, FunctionValue, Instance, Symbol

LOADERS = {"DataLoader", "StatefulDataLoader", "BatchSampler"}
_MAX_BASES = 4


def inherits_loader(evaluator: Evaluator, value: Instance, hops: int = 0) -> bool:
    """Whether a class of the workspace is a loader by its bases."""
    node = value.of.scope.node
    for base in node.bases if isinstance(node, ast.ClassDef) else []:
        parent = evaluator.value(base, value.of.closure)
        if isinstance(parent, Symbol) and parent.name.rpartition(".")[2] in LOADERS:
            return True
        nested = Instance(parent) if isinstance(parent, ClassValue) and hops < _MAX_BASES else None
        if nested is not None and inherits_loader(evaluator, nested, hops + 1):
            return True
    return False


def parent_calls(evaluator: Evaluator, value: Instance) -> Iterator[tuple[ast.Call, Frame]]:
    """The calls of `super().__init__` in its constructor, and the frame they are written in."""
    scope = value.of.scope
    for inner in scope.inner.values():
        if not isinstance(inner.node, Function) or inner.name != "__init__":
            continue
        if value.call is None or value.frame is None:
            continue
        method = FunctionValue(inner, value.of.closure, value)
        frame = entered_frame(evaluator, method, value.call, value.frame)
        for site in evaluator.project.calls_by_name.get("__init__", []):
            if site.scope is inner and unparse(site.call.func) == "super().__init__":
                yield site.call, frame
