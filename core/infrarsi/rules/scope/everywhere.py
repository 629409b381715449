"""What the rules of this family look at: the files that differ, calls by library, and tests.

A file with the same text on both sides has nothing new, so only the others are gone through.
"""

import ast
from collections.abc import Callable, Iterable, Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.attached import attached
from infrarsi.reading.scopes import Scope, dotted
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.walking import walk
from infrarsi.rules.difference import added, callee
from infrarsi.rules.fragments import Fragment, fresh, pieces
from infrarsi.rules.regions import Region
from infrarsi.rules.remembered import remembered

_SAYS = {
    *("print", "info", "debug", "warning", "log", "write", "set_postfix", "set_description"),
    *("add_scalar", "log_metrics", "flush", "update", "tqdm"),
}
_CONVERTS = {
    *("int", "float", "bool", "str", "len", "any", "all", "set", "list", "Path", "tuple", "min"),
    *(
        "max",
        "sum",
        "isinstance",
        "startswith",
        "get",
        "bytes",
        "sorted",
        "dict",
        "S_ISSOCK",
        "abs",
    ),
}


@remembered
def differing(program: Program, other: Program) -> tuple[Region, ...]:
    """The files of a side that the other side has not with the same text."""
    if not program.is_followed:
        return ()
    same = set(other.project.files.values()) if other.is_followed else set[SourceFile]()
    return tuple(
        (scope, scope.node)
        for scope in program.project.modules.values()
        if scope.source not in same
    )


def all_pieces(
    program: Program, other: Program, wanted: Callable[[ast.AST], bool], *kinds: type[ast.AST]
) -> list[Fragment]:
    """The wanted nodes of some kinds in the files that differ."""
    return pieces(program, differing(program, other), wanted, *kinds)


@remembered
def _calls(program: Program, other: Program) -> tuple[Call, ...]:
    """The calls in the files that differ."""
    files = {scope.source for scope, _ in differing(program, other)}
    if not files:
        return ()
    return tuple(call for call in program.calls if call.site.scope.source in files)


def called(program: Program, other: Program, names: Iterable[str]) -> list[Call]:
    """Calls whose last name is one of these, in the files that differ."""
    wanted = set(names)
    return [call for call in _calls(program, other) if call.name in wanted]


@remembered
def _calls_by_library(program: Program, other: Program) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for call in _calls(program, other):
        found.setdefault(plain_name(call).partition(".")[0], []).append(call)
    return found


def plain_name(call: Call) -> str:
    """The callee without `builtins.`."""
    return call.callee.removeprefix("builtins.")


def calls_of(program: Program, other: Program, names: Iterable[str]) -> list[Call]:
    """Calls of these in the files that differ, dead ones apart.

    A name that ends in a dot means all that is below it.
    """
    wanted = tuple(names)
    exact = {name for name in wanted if not name.endswith(".")}
    below = tuple(name for name in wanted if name.endswith("."))
    roots = dict.fromkeys(name.partition(".")[0] for name in wanted)
    index = _calls_by_library(program, other)
    return [
        call
        for root in roots
        for call in index.get(root, ())
        if _is_named(plain_name(call), exact, below) and not call.is_dead
    ]


def _is_named(name: str, exact: set[str], below: tuple[str, ...]) -> bool:
    return name in exact or (bool(below) and name.startswith(below))


def new_calls(now: Program, was: Program, names: Iterable[str]) -> Iterator[Call]:
    """Calls of these beyond those of the baseline, whatever their arguments."""
    wanted = tuple(names)
    return added(calls_of(now, was, wanted), calls_of(was, now, wanted), callee)


def new_decorators(now: Program, was: Program, names: Iterable[str]) -> Iterator[Fragment]:
    """Functions of these put above a definition, which calls them without a call in sight."""
    wanted = tuple(names)
    return fresh(_decorators(now, was, wanted), _decorators(was, now, wanted))


def _is_decorated(node: ast.AST) -> bool:
    return bool(getattr(node, "decorator_list", ()))


def _decorators(program: Program, other: Program, names: tuple[str, ...]) -> list[Fragment]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [
        Fragment(program, piece.scope, decorator)
        for piece in all_pieces(program, other, _is_decorated, *kinds)
        for decorator in getattr(piece.node, "decorator_list", ())
    ]
    return [piece for piece in found if piece.text.startswith(names)]


def texts_in(node: ast.AST) -> Iterator[str]:
    """The literal texts in a piece of code."""
    for inner in walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def only_reports(body: list[ast.stmt]) -> bool:
    """Whether statements do nothing but print or log."""
    return all(
        isinstance(statement, ast.Pass)
        or (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and _last_name(statement.value.func) in _SAYS
        )
        for statement in body
    )


def decides(fragment: Fragment) -> bool:
    """Whether a value may decide what is done: it is tested, compared or given back."""
    source = fragment.scope.source
    node = fragment.node
    for around in source.ancestors(node):
        match around:
            case ast.If(test=test, body=body, orelse=orelse):
                return test is node and not (only_reports(body) and not orelse)
            case ast.IfExp() | ast.While() | ast.Assert() | ast.Match() | ast.comprehension():
                return True
            case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.BoolOp(op=ast.And()):
                return not _only_guards_reports(source, around)
            case ast.Return() | ast.Lambda():
                return True
            case ast.Assign(targets=targets):
                return any(_is_tested(fragment.program, t) for t in targets)
            case ast.NamedExpr(target=target) | ast.AnnAssign(target=target):
                return _is_tested(fragment.program, target)
            case ast.AugAssign(target=target):
                return _is_tested(fragment.program, target)
            case ast.stmt():
                return False
            case ast.keyword() | ast.Call() if _is_argument(around, node):
                return isinstance(fragment.node, ast.Compare) and not _says(around)
            case _:
                node = around
    return False


def _is_argument(around: ast.AST, node: ast.AST) -> bool:
    """Whether a value is handed to a function other than one that only converts it."""
    if isinstance(around, ast.keyword):
        return True
    assert isinstance(around, ast.Call)
    return around.func is not node and _last_name(around.func) not in _CONVERTS


def _says(around: ast.AST) -> bool:
    return isinstance(around, ast.Call) and _last_name(around.func) in _SAYS


def _only_guards_reports(source: SourceFile, node: ast.AST) -> bool:
    statement = source.statement(node)
    if isinstance(statement, ast.If):
        return only_reports(statement.body) and not statement.orelse
    return False


def _is_tested(program: Program, target: ast.expr) -> bool:
    names = {
        inner.id if isinstance(inner, ast.Name) else inner.attr
        for inner in walk(target)
        if isinstance(inner, ast.Name | ast.Attribute)
    } - {"self"}
    return bool(names & tested_names(program))


@remembered
def tested_names(program: Program) -> frozenset[str]:
    """Names and attributes that some condition or comparison reads."""
    found: frozenset[str] = frozenset()
    for source in program.project.files.values():
        found |= _tested_in(source)
    return found


@attached
def _tested_in(source: SourceFile) -> frozenset[str]:
    tests: list[ast.AST] = []
    for node in source.nodes:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                if orelse or not only_reports(body):
                    tests.append(test)
            case ast.IfExp(test=test) | ast.While(test=test):
                tests.append(test)
            case ast.Compare() if not isinstance(source.parents.get(node), ast.If):
                tests.append(node)
            case _:
                pass
    return frozenset(
        inner.id if isinstance(inner, ast.Name) else inner.attr
        for test in tests
        for inner in walk(test)
        if isinstance(inner, ast.Name | ast.Attribute)
    )


def library_name(program: Program, node: ast.expr, scope: Scope) -> str:
    """The dotted name of something of another library; empty for anything of the workspace."""
    text = dotted(node)
    if text is None:
        return ""
    spelled = program.spell(node, scope)
    root = text.partition(".")[0]
    return spelled if _is_imported(root, scope) else ""


def _is_imported(name: str, scope: Scope) -> bool:
    for around in scope.around():
        if name in around.events:
            return any(event.kind == "import" for event in around.events[name])
    return False


def warned(
    code: str,
    message: str,
    place: Place | None,
    severity: Severity = "warning",
    contract_place: Place | None = None,
) -> Violation:
    """A finding that is left to a run unless it is said to be certain."""
    return violation(code, message, severity=severity, place=place, contract_place=contract_place)


def shown(text: str, length: int = 60) -> str:
    """A piece of code on one line, for a message."""
    return " ".join(text.split()).replace("builtins.", "")[:length]


def one_a_line(found: Iterable[Violation]) -> Iterator[Violation]:
    """The findings without those on a line that already has one as severe."""
    kept: dict[tuple[str, int], Violation] = {}
    for number, each in enumerate(found):
        at = (each.place.file, each.place.line) if each.place is not None else ("", -number)
        if at not in kept or (each.severity, kept[at].severity) == ("error", "warning"):
            kept[at] = each
    yield from kept.values()


def _last_name(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
