"""The files a training script reaches through its imports, and how module names find them."""

import ast
import posixpath
from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

from infrarsi.launch import Launch
from infrarsi.reading.configurator import apply_configurator
from infrarsi.reading.documents import Document, Format, parse_document
from infrarsi.reading.memory import Memory, Trace
from infrarsi.reading.parts import CallSite, imports_of, parts_of
from infrarsi.reading.scopes import Scope, module_scope, scope_of_file
from infrarsi.reading.sources import Sources
from infrarsi.reading.syntax import SourceFile, parse_source
from infrarsi.reading.watched import Watched

_MAX_FILES = 200
T = TypeVar("T")


class Project:
    """The reachable files of one job, parsed."""

    def __init__(self, sources: Sources, launch: Launch, memory: Memory | None = None) -> None:
        """Follow the imports from the launch's script on."""
        self.launch = launch
        self.trace = Trace(memory)
        self.trace.subjects["project"] = self
        self.sources = sources
        self.roots = _import_roots(launch)
        self._files: dict[str, SourceFile] = {}
        self._modules: dict[str, Scope] = {}
        self._documents: dict[str, Document] = {}
        self._load_reachable()
        self.overlays = apply_configurator(self._modules.get(launch.script), sources, launch)
        self._parts = {file: parts_of(module) for file, module in self._modules.items()}
        look = self.trace.look
        self.files = Watched(self._files, self._whole, lambda file: look("project", _module, file))
        self.modules = Watched(
            self._modules, self._whole, lambda file: look("project", _module, file)
        )
        self.documents = Watched(self._documents, self.trace.never, lambda _: self.trace.never())
        parts = self._parts.values()
        scopes = dict(chain.from_iterable(part.scopes.items() for part in parts))
        self.scopes = Watched(scopes, self._whole, lambda _: None)
        writes = _gathered([part.writes for part in parts])
        self.attribute_writes = Watched(
            writes, self._whole, lambda name: look("project", _writes, name)
        )
        by_name = _gathered([part.by_name for part in parts])
        self.calls_by_name = Watched(
            by_name, self._whole, lambda name: look("project", _named, name)
        )
        added = dict(chain.from_iterable(part.additions.items() for part in parts))
        self.additions = Watched(added, self._whole, lambda key: look("project", _added, key))
        """Calls that add to a list by its name (`batches.append(x)`), with what they add."""

    @property
    def calls(self) -> list[CallSite]:
        """All calls, in order of file and place."""
        self._whole()
        return [site for parts in self._parts.values() for site in parts.calls]

    def inside(self, blocks: Iterable[tuple[Scope, ast.AST]]) -> list[CallSite]:
        """The calls that stand in some blocks, in order of file and place."""
        lists = [self._inside(where.source.file, block) for where, block in blocks]
        return lists[0] if len(lists) == 1 else self.in_order(lists)

    def _inside(self, file: str, block: ast.AST) -> list[CallSite]:
        self.trace.look("project", _module, file)
        return list(self._parts[file].inside(block)) if file in self._parts else []

    def in_order(self, lists: list[list[CallSite]]) -> list[CallSite]:
        """Calls of several lists in one, in order of file and place."""
        order = {file: n for n, file in enumerate(self.trace.look("project", _order))}
        sites = dict.fromkeys(site for several in lists for site in several)
        return sorted(sites, key=lambda site: (order[site.scope.source.file], site.number))

    def mentions(self, word: str) -> bool:
        """Whether some file holds the word, anywhere."""
        return self.trace.look("project", _mentions, word)

    def lost(self) -> tuple[str, ...]:
        """The texts of what is missing in the files' trees."""
        return self.trace.look("project", _lost)

    def naming(self, canonical: str) -> list[tuple[Scope, str]]:
        """The scopes that bind a spelling of a canonical name to a value, with that spelling."""
        return self.trace.look("project", _naming, canonical)

    @property
    def half_typed(self) -> bool:
        """Whether some line of the job does not parse."""
        if self._documents:
            self.trace.never()
        sources = self.trace.look("project", _is_broken)
        return sources or any(document.broken for document in self._documents.values())

    def text(self, path: str) -> str | None:
        """The text of any file of the workspace."""
        return self.trace.look("project", _text, path)

    def document(self, path: str, form: Format) -> Document | None:
        """A configuration file, parsed; it counts as read from then on."""
        self.trace.never()
        text = self.sources.text(path)
        if text is None:
            return None
        self._documents[path] = parse_document(path, text, form)
        return self._documents[path]

    def scope_of(self, file: str, node: ast.AST) -> Scope:
        """The innermost scope around a node (for a function: the scope it is defined in)."""
        return self._parts[file].scope_of(node)

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
            return self.trace.look(
                "project", _module_at, posixpath.join(base, path) if path else base
            )
        return self.trace.look("project", _found_module, path)

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

    def _whole(self) -> None:
        self.trace.look("project", _everything)

    def _load_reachable(self) -> None:
        queue = [self.launch.script]
        while queue and len(self._files) < _MAX_FILES:
            file = queue.pop(0)
            text = None if file in self._files else self.sources.text(file)
            if text is None:
                continue
            source = self._files[file] = parse_source(file, text)
            is_configured = file == self.launch.script and "configurator" in text
            self._modules[file] = module_scope(source) if is_configured else scope_of_file(source)
            for node in imports_of(source):
                queue += self.imported_files(node, file)


def _import_roots(launch: Launch) -> list[str]:
    """Where Python would look: beside the script, PYTHONPATH, then likely source folders."""
    beside = posixpath.dirname(launch.script)
    listed = [part for part in launch.env.get("PYTHONPATH", "").split(":") if part]
    inside = [posixpath.normpath(part) for part in listed if not posixpath.isabs(part)]
    roots = [beside, *("" if part == "." else part for part in inside), "", "src"]
    return list(dict.fromkeys(roots))


def _gathered(parts: list[dict[str, list[T]]]) -> dict[str, list[T]]:
    """All files' lists by name, in order of file; those of one file as they are."""
    found: dict[str, list[T]] = {}
    for part in parts:
        for name, several in part.items():
            known = found.get(name)
            found[name] = several if known is None else [*known, *several]
    return found


def _everything(project: Project) -> tuple[Scope, ...]:
    return tuple(project.modules.held.values())


def _order(project: Project) -> tuple[str, ...]:
    return tuple(project.modules.held)


def _mentions(project: Project, word: str) -> bool:
    return any(word in module.source.text for module in project.modules.held.values())


def _lost(project: Project) -> tuple[str, ...]:
    sources = (module.source for module in project.modules.held.values())
    return tuple(source.lost for source in sources if source.broken)


def _naming(project: Project, canonical: str) -> list[tuple[Scope, str]]:
    modules = project.modules.held.values()
    return [held for module in modules for held in parts_of(module).naming(canonical)]


def _module(project: Project, file: str | None) -> Scope | None:
    return project.modules.held.get(file) if file is not None else None


def _writes(project: Project, name: str) -> list[tuple[Scope, str]]:
    return project.attribute_writes.held.get(name, [])


def _named(project: Project, name: str) -> list[CallSite]:
    return project.calls_by_name.held.get(name, [])


def _added(project: Project, key: tuple[Scope, str]) -> list[tuple[ast.AST, ast.expr]]:
    return project.additions.held.get(key, [])


def _is_broken(project: Project) -> bool:
    return any(module.source.broken for module in project.modules.held.values())


def _text(project: Project, path: str) -> str | None:
    return project.sources.text(path)


def _found_module(project: Project, path: str) -> str | None:
    found = (_module_at(project, posixpath.join(root, path)) for root in project.roots)
    return next((file for file in found if file is not None), None)


def _module_at(project: Project, path: str) -> str | None:
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if project.sources.text(candidate) is not None:
            return candidate
    return None
