"""What imported names mean: files of the workspace are followed, other libraries are symbols."""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading.frames import Frame
from infrarsi.reading.values import Module, Symbol, Unknown, Value

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator


def imported(
    evaluator: "Evaluator", name: str, node: ast.Import | ast.ImportFrom, frame: Frame
) -> Value:
    """What an import statement binds to `name`."""
    project, importer = evaluator.project, frame.scope.source.file
    if isinstance(node, ast.Import):
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
        wanted = alias.name if alias.asname else name
        file = project.find_module(wanted, importer)
        return Module(file) if file is not None and file in project.files else Symbol(wanted)
    alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
    module = node.module or ""
    prefix = f"{module}." if module else ""
    submodule = project.find_module(prefix + alias.name, importer, node.level)
    if submodule is not None and submodule in project.files:
        return Module(submodule)
    file = project.find_module(module, importer, node.level)
    if file is not None and file in project.files:
        return module_member(evaluator, file, alias.name)
    return Symbol(prefix + alias.name)


def module_member(evaluator: "Evaluator", file: str, name: str) -> Value:
    """What a name means at the end of a module of the workspace."""
    if (file, name) in evaluator.importing:
        evaluator.trace.never()
        return Unknown(f"`{name}` is imported in a circle")
    evaluator.importing.append((file, name))
    try:
        return evaluator.name(name, evaluator.frame(evaluator.project.modules[file]))
    finally:
        evaluator.importing.pop()


def starred(evaluator: "Evaluator", name: str, frame: Frame) -> Value | None:
    """What `from module import *` binds to a name, None where nothing does."""
    project = evaluator.project
    module = project.modules[frame.scope.source.file]
    for event in module.events.get("*", []):
        if isinstance(event.node, ast.ImportFrom):
            node = event.node
            file = project.find_module(node.module or "", module.source.file, node.level)
            if file is None or file not in project.files:
                continue
            if name in project.modules[file].events:
                return module_member(evaluator, file, name)
    return None
