"""Where in a program what happens: the step, the forward passes, the fetching of rows."""

import ast
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Function, Scope, dotted
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.walking import walk
from infrarsi.rules.remembered import remembered

Region = tuple[Scope, ast.AST]
_KINDS: WeakKeyDictionary[SourceFile, dict[ast.AST, dict[type, list[ast.AST]]]] = (
    WeakKeyDictionary()
)
_FETCHING = {"__getitem__", "__getitems__", "__next__", "__iter__", "get_batch", "next_batch"}


@remembered
def step_regions(program: Program) -> tuple[Region, ...]:
    """The update loop and the workspace's functions it calls, model code apart."""
    training = program.work.training if program.is_followed else None
    return training.blocks if training is not None else ()


@remembered
def forward_regions(program: Program) -> tuple[Region, ...]:
    """The methods of torch modules that run in a forward pass."""
    return tuple(
        (scope, scope.node)
        for scope in program.module_scopes()
        if not scope.name.startswith(("__init", "_init", "init_", "reset_", "configure"))
        and isinstance(getattr(scope.parent, "node", None), ast.ClassDef)
    )


@remembered
def fetch_scopes(program: Program) -> tuple[Scope, ...]:
    """The functions rows come through: those that are entered, and those named for it."""
    if not program.is_followed:
        return ()
    entered = program.work.fetching.scopes
    named = [
        scope
        for scope in program.project.scopes.values()
        if isinstance(scope.node, Function)
        and (scope.name in _FETCHING or "collate" in scope.name.lower())
        and scope not in entered
    ]
    modules = {scope for scope, _ in module_regions(program)}
    return tuple(scope for scope in (*entered, *named) if scope not in modules)


@remembered
def module_regions(program: Program) -> tuple[Region, ...]:
    """All methods of torch modules."""
    return tuple((scope, scope.node) for scope in program.module_scopes())


@remembered
def data_regions(program: Program) -> tuple[Region, ...]:
    """What fetching enters, and all of the files that hold nothing but data code."""
    if not program.is_followed:
        return ()
    busy = {scope.source.file for scope, _ in (*step_regions(program)[:1],)}
    busy |= {scope.source.file for scope in program.module_scopes()}
    fetching = fetch_scopes(program)
    holders = {scope.parent for scope in fetching if scope.name in _FETCHING and scope.parent}
    holders = {scope for scope in holders if isinstance(scope.node, ast.ClassDef)}
    files = {scope.source.file for scope in fetching} - busy
    files |= {file for file in program.project.files if _is_of_data(file)} - busy
    modules = [program.project.modules[file] for file in sorted(files)]
    names = {scope.name for scope in fetching if scope.name}
    own = [
        scope
        for scope in program.project.scopes.values()
        if scope.source.file not in files
        and (
            scope in fetching
            or scope in holders
            or (scope.name in names and isinstance(scope.node, Function))
        )
    ]
    return tuple((scope, scope.node) for scope in (*modules, *own))


@remembered
def calls_in(program: Program, regions: tuple[Region, ...]) -> tuple[Call, ...]:
    """The calls written in some regions, dead ones apart."""
    return tuple(_calls_in(program, regions))


def nodes_in(regions: tuple[Region, ...], kind: type[ast.AST]) -> Iterator[Region]:
    """The nodes of a kind in some regions, each once, with a scope of their file."""
    seen: set[ast.AST] = set()
    for scope, region in regions:
        for node in _by_kind(scope.source, region).get(kind, ()):
            if node not in seen:
                seen.add(node)
                yield scope, node


def _by_kind(source: SourceFile, region: ast.AST) -> dict[type, list[ast.AST]]:
    """The nodes of a region by kind; kept as long as the file's text is."""
    known = _KINDS.setdefault(source, {})
    if region not in known:
        found: dict[type, list[ast.AST]] = {}
        for node in source.nodes if isinstance(region, ast.Module) else walk(region):
            found.setdefault(type(node), []).append(node)
        known[region] = found
    return known[region]


def _calls_in(program: Program, regions: tuple[Region, ...]) -> Iterator[Call]:
    for call in program.calls_in(regions):
        if not call.is_dead:
            yield call


@remembered
def fetched_names(program: Program) -> frozenset[str]:
    """The names the step binds to fetched rows."""
    if not program.is_followed:
        return frozenset()
    names = {
        name
        for fetch in program.work.flow.fetches
        for target in _targets(fetch.node)
        for name in _names(target)
    }
    return frozenset(names - {"self", "_"})


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            yield from targets
        case ast.For(target=target) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield target
        case _:
            pass


def _names(target: ast.expr) -> Iterator[str]:
    for inner in walk(target):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield dotted(inner) or inner.attr


def _is_of_data(file: str) -> bool:
    name = file.rpartition("/")[2].removesuffix(".py").lower()
    words = ("data", "dataset", "datasets", "loader", "dataloader", "corpus", "text", "tokens")
    return any(word in name.split("_") for word in words)
