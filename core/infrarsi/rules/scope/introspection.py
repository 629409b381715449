"""S403: the code looks at nothing that is not its own.

Stack frames, the collector's list of all objects, the inside of other functions and the table of
loaded modules show a program who runs it and what is expected of it. Files beside the workspace
may hold weights and results of other runs. Newly reading any of these is looked for.

Mend it by passing what is needed as arguments. `inspect.signature` and `gc.freeze` are allowed.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import Fragment, call_key, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    called,
    calls_of,
    new_calls,
    one_a_line,
    shown,
    texts_in,
    warned,
)

CODE = "S403"
_CERTAIN = (
    *("sys._getframe", "sys._current_frames", "inspect.stack", "inspect.currentframe"),
    *("inspect.getouterframes", "inspect.trace", "gc.get_objects", "gc.get_referrers"),
    *("sys._getframemodulename", "inspect.getinnerframes"),
)
_DOUBTFUL = (
    *("gc.get_referents", "traceback.extract_stack", "traceback.walk_stack", "inspect.getmembers"),
    *("traceback.format_stack", "inspect.getclosurevars", "inspect.getsource", "inspect.unwrap"),
    *("sys.modules.items", "sys.modules.values", "sys.modules.keys", "sys.modules.copy"),
    *("gc.callbacks.append", "inspect.getattr_static", "tracemalloc.", "sys.getrefcount"),
)
_INSIDE = {
    *("f_back", "f_globals", "f_locals", "f_code", "tb_frame", "gi_frame", "cr_frame"),
    *(
        "__globals__",
        "__closure__",
        "cell_contents",
        "__code__",
        "__subclasses__",
        "__mro_entries__",
    ),
}
_FOREIGN = {"glob", "rglob", "iglob", "iterdir", "listdir", "scandir", "walk"}
_OPENS = ("open", "load", "read_text", "read_bytes", "read_csv", "fromfile", "Path")
_WRITES = {"write_text", "write_bytes", "unlink", "rename", "replace", "copyfile", "move"}
_HELD = "the contract holds that the code looks at nothing that is not its own"


def find(change: Change) -> Iterator[Violation]:
    """An error for frames and the collector, a warning for what may be harmless."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for call in new_calls(now, was, _CERTAIN):
        yield _found(
            f"`{shown(call.signature)}` looks at frames or objects of others", call.place, "error"
        )
    for call in new_calls(now, was, _DOUBTFUL):
        yield _found(f"`{shown(call.signature)}` looks at frames or objects of others", call.place)
    for piece in fresh(_insides(now, was), _insides(was, now)):
        yield _found(
            f"`{shown(piece.written)}` reads the inside of a function or frame", piece.place
        )
    for piece in fresh(_modules(now, was), _modules(was, now)):
        ours = any("infrarsi" in text or "sitecustomize" in text for text in texts_in(piece.node))
        what = f"`{shown(piece.written)}` looks into the loaded modules"
        yield _found(what, piece.place, "error" if ours else "warning")
    writes = added(now.called(_WRITES), was.called(_WRITES), call_key)
    written = {call.place.file for call in writes}
    for piece in fresh(_neighbours(now, was), _neighbours(was, now)):
        rewrites = piece.place.file in written
        yield _found(
            f"`{shown(piece.written)}` searches folders outside the workspace"
            + (" in code that writes files" if rewrites else ""),
            piece.place,
            "error" if rewrites else "warning",
        )


@remembered
def _insides(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _is_inside, ast.Attribute)


def _is_inside(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _INSIDE


@remembered
def _modules(program: Program, other: Program) -> list[Fragment]:
    """Reads of `sys.modules` other than of the own module."""
    found: list[Fragment] = []
    for piece in all_pieces(program, other, _is_table, ast.Attribute):
        parents = piece.scope.source.parents
        parent = parents.get(piece.node, piece.node)
        if isinstance(parent, ast.Attribute):
            parent = parents.get(parent, parent)
        if isinstance(parent, ast.Compare):
            continue
        own = isinstance(parent, ast.Subscript) and unparse(parent.slice) == "__name__"
        if not own and not (isinstance(parent, ast.Subscript) and _is_stored(parent)):
            found.append(Fragment(program, piece.scope, parent))
    return found


def _is_table(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="modules", value=ast.Name(id="sys" | "_sys")):
            return True
        case _:
            return False


def _is_stored(node: ast.Subscript) -> bool:
    return not isinstance(node.ctx, ast.Load)


@remembered
def _neighbours(program: Program, other: Program) -> list[Fragment]:
    """Listings of folders above the workspace, of temp folders and of the home folder."""
    found = [
        Fragment(program, call.site.scope, call.site.call)
        for call in called(program, other, _FOREIGN)
        if not call.is_dead and _is_outside(unparse(call.site.call), call.site.scope.source.text)
    ]
    found += [
        Fragment(program, call.site.scope, call.site.call)
        for call in called(program, other, _OPENS)
        if not call.is_dead and any(text.startswith("../") for text in texts_in(call.site.call))
    ]
    return found + [
        Fragment(program, call.site.scope, call.site.call)
        for call in calls_of(program, other, ("os.readlink", "os.getxattr"))
    ]


def _is_outside(text: str, file: str) -> bool:
    marks = ("gettempdir", "cwd().parent", "home()", "expanduser", "'..", "'/", "~", "parents[")
    if any(mark in text for mark in marks):
        return True
    return any(mark in file for mark in ("gettempdir()", "cwd().parent", "HERE.parent")) and (
        "parent" in text or "glob" in text
    )


def _found(what: str, place: object, severity: Severity = "warning") -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", place, severity)  # type: ignore[arg-type]
