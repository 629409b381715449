"""The files a training script reaches through its imports, and how module names find them."""

import ast
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from infrarsi.launch import Launch
from infrarsi.reading.configurator import apply_configurator
from infrarsi.reading.documents import Document, Format, parse_document
from infrarsi.reading.scopes import Scope, module_scope, scope_of_file
from infrarsi.reading.sources import Sources
from infrarsi.reading.syntax import SourceFile, parse_source

_MAX_FILES = 200


@dataclass(frozen=True, eq=False)
class CallSite:
    """One call in the project and the scope it is written in."""

    call: ast.Call
    scope: Scope

    @property
    def name(self) -> str:
        """The last name of what is called: `step` of `optimizer.step()`."""
        match self.call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
            case _:
                return ""


class Project:
    """The reachable files of one job, parsed."""

    def __init__(self, sources: Sources, launch: Launch) -> None:
        """Follow the imports from the launch's script on."""
        self.launch = launch
        self._sources = sources
        self._roots = _import_roots(launch)
        self.files: dict[str, SourceFile] = {}
        self.modules: dict[str, Scope] = {}
        self.documents: dict[str, Document] = {}
        self._load_reachable()
        self.overlays = apply_configurator(self.modules.get(launch.script), sources, launch)
        self.scopes: dict[ast.AST, Scope] = {
            scope.node: scope for module in self.modules.values() for scope in _all_scopes(module)
        }
        self.calls = [site for file in self.files for site in self._calls_of(file)]
        self.attribute_writes: dict[str, list[tuple[Scope, str]]] = {}
        for scope in self.scopes.values():
            for path in scope.events:
                if "." in path:
                    self.attribute_writes.setdefault(path.rpartition(".")[2], []).append(
                        (scope, path)
                    )
        self.calls_by_name: dict[str, list[CallSite]] = {}
        for site in self.calls:
            self.calls_by_name.setdefault(site.name, []).append(site)

    @cached_property
    def additions(self) -> dict[tuple[Scope, str], list[tuple[ast.AST, ast.expr]]]:
        """Calls that add to a list by its name (`batches.append(x)`), with what they add."""
        found: dict[tuple[Scope, str], list[tuple[ast.AST, ast.expr]]] = {}
        for method in ("append", "extend", "insert"):
            for site in self.calls_by_name.get(method, []):
                match site.call:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=held)), args=[*_, element]):
                        found.setdefault((site.scope, held), []).append((site.call, element))
                    case _:
                        pass
        return found

    @property
    def half_typed(self) -> bool:
        """Whether some line of the job does not parse."""
        sources = any(source.broken for source in self.files.values())
        return sources or any(document.broken for document in self.documents.values())

    def text(self, path: str) -> str | None:
        """The text of any file of the workspace."""
        return self._sources.text(path)

    def document(self, path: str, form: Format) -> Document | None:
        """A configuration file, parsed; it counts as read from then on."""
        text = self._sources.text(path)
        if text is None:
            return None
        self.documents[path] = parse_document(path, text, form)
        return self.documents[path]

    def scope_of(self, file: str, node: ast.AST) -> Scope:
        """The innermost scope around a node (for a function: the scope it is defined in)."""
        for ancestor in self.files[file].ancestors(node):
            if ancestor in self.scopes:
                return self.scopes[ancestor]
        return self.modules[file]

    def is_overlay(self, call: ast.Call) -> bool:
        """Whether a call of `exec` runs a configurator whose effect is known."""
        return call in self.overlays

    def find_module(self, name: str, importer: str, level: int = 0) -> str | None:
        """The workspace file of a dotted module name, None where it is another library's."""
        path = name.replace(".", "/")
        if level:
            base = posixpath.dirname(importer)
            for _ in range(level - 1):
                base = posixpath.dirname(base)
            return self._module_at(posixpath.join(base, path) if path else base)
        found = (self._module_at(posixpath.join(root, path)) for root in self._roots)
        return next((file for file in found if file is not None), None)

    def imported_files(self, node: ast.Import | ast.ImportFrom, importer: str) -> list[str]:
        """The workspace files an import statement runs or may run."""
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found = [self.find_module(name, importer) for name in names]
        else:
            module, level = node.module or "", node.level
            prefix = f"{module}." if module else ""
            found = [self.find_module(module, importer, level)] if module or level else []
            found += [
                self.find_module(prefix + alias.name, importer, level) for alias in node.names
            ]
        return [file for file in found if file is not None]

    def _module_at(self, path: str) -> str | None:
        for candidate in (f"{path}.py", f"{path}/__init__.py"):
            if self._sources.text(candidate) is not None:
                return candidate
        return None

    def _load_reachable(self) -> None:
        queue = [self.launch.script]
        while queue and len(self.files) < _MAX_FILES:
            file = queue.pop(0)
            text = None if file in self.files else self._sources.text(file)
            if text is None:
                continue
            source = self.files[file] = parse_source(file, text)
            is_configured = file == self.launch.script and "configurator" in text
            self.modules[file] = module_scope(source) if is_configured else scope_of_file(source)
            for node in source.nodes:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    queue += self.imported_files(node, file)

    def _calls_of(self, file: str) -> Iterator[CallSite]:
        for node in self.files[file].nodes:
            if isinstance(node, ast.Call):
                yield CallSite(node, self.scope_of(file, node))


def _import_roots(launch: Launch) -> list[str]:
    """Where Python would look: beside the script, PYTHONPATH, then likely source folders."""
    beside = posixpath.dirname(launch.script)
    listed = [part for part in launch.env.get("PYTHONPATH", "").split(":") if part]
    inside = [posixpath.normpath(part) for part in listed if not posixpath.isabs(part)]
    roots = [beside, *("" if part == "." else part for part in inside), "", "src"]
    return list(dict.fromkeys(roots))


def _all_scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for inner in scope.inner.values():
        yield from _all_scopes(inner)
