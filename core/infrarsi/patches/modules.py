"""The modules a launch reaches, parsed for rewriting.

Leaves out everything a recipe does with them, and error recovery: text that does not parse is a
reason to decline, since a half-typed file must not be rewritten.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from infrarsi.launch import Launch
from infrarsi.patches.names import Names
from infrarsi.patches.recipe import Declined
from infrarsi.patches.syntax import depth, walk
from infrarsi.reading.sources import Sources

_BOM = "\ufeff"
_MAX_DEPTH = 150
"""libcst visits by recursion, three frames a level; code people write stays below 50."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """One parsed file. libcst drops a byte order mark, so it is kept apart."""

    path: str
    tree: cst.Module
    bom: str = ""

    @cached_property
    def names(self) -> Names:
        """What the file's names stand for."""
        return Names(self.tree)

    def text(self, tree: cst.Module) -> str:
        """The file's text with another tree."""
        return self.bom + tree.code


Codebase = tuple[Module, ...]
"""The launched script first, then what it imports from the workspace, breadth first."""


def read_codebase(sources: Sources, launch: Launch) -> Codebase | Declined:
    """Parse the script and every workspace module reachable from it.

    Declines when the script is missing or a reachable module does not parse.
    """
    modules: dict[str, Module] = {}
    queue = [launch.script]
    while queue:
        path = queue.pop(0)
        text = sources.text(path)
        if path in modules or text is None:
            continue
        module = parse(path, text)
        if isinstance(module, Declined):
            return module
        modules[path] = module
        queue += _imported_paths(module, sources, launch)
    if not modules:
        return Declined(reason=f"There is no readable script {launch.script}.")
    return tuple(modules.values())


def parse(path: str, text: str) -> Module | Declined:
    """Parse one file, or say where it does not parse."""
    bom = _BOM if text.startswith(_BOM) else ""
    try:
        tree = cst.parse_module(text.removeprefix(_BOM))
    except cst.ParserSyntaxError as error:
        return Declined(reason=f"{path} does not parse at line {error.raw_line}.")
    except (UnicodeError, RecursionError, ValueError) as error:
        return Declined(reason=f"{path} cannot be parsed ({type(error).__name__}).")
    if depth(tree) > _MAX_DEPTH:
        return Declined(reason=f"{path} is nested too deeply to be rewritten.")
    return Module(path=path, tree=tree, bom=bom)


def _imported_paths(module: Module, sources: Sources, launch: Launch) -> Iterator[str]:
    roots = dict.fromkeys((posixpath.dirname(launch.script), "", "src"))
    for node in walk(module.tree):
        for relative_to, dotted in _imports(node, module.path):
            bases = roots if relative_to is None else (relative_to,)
            yield from _existing(bases, dotted, sources)


def _imports(node: cst.CSTNode, path: str) -> Iterator[tuple[str | None, str]]:
    """(folder it is relative to, dotted module) of each module an import may load."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            yield None, alias.evaluated_name
    if isinstance(node, cst.ImportFrom):
        dotted = _dotted(node.module)
        folder = None
        if node.relative:
            folder = posixpath.dirname(path)
            for _ in node.relative[1:]:
                folder = posixpath.dirname(folder)
        if dotted:
            yield folder, dotted
        if not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                yield folder, ".".join(filter(None, (dotted, alias.evaluated_name)))


def _dotted(node: cst.BaseExpression | None) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _existing(
    bases: "dict[str, None] | tuple[str, ...]", dotted: str, sources: Sources
) -> list[str]:
    parts = dotted.split(".")
    tail = "/".join(parts)
    for base in bases:
        packages = [
            posixpath.join(base, *parts[:n], "__init__.py") for n in range(1, len(parts) + 1)
        ]
        found = [
            p
            for p in (*packages, posixpath.join(base, f"{tail}.py"))
            if sources.text(p) is not None
        ]
        if found:
            return found
    if bases == ("",) or len(bases) == 1:
        return []
    return _installed_from_here(tail, sources)


def _installed_from_here(tail: str, sources: Sources) -> list[str]:
    """Packages installed as editable from a folder of the workspace."""
    ends = (f"/{tail}.py", f"/{tail}/__init__.py")
    found = [path for path in sources.paths() if path.endswith(ends)]
    return found if len(found) == 1 else []
