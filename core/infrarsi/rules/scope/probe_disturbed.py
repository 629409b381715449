"""S406: what measures stays in place, and what it writes arrives whole.

Hooks on the optimizer and on modules count what a step does; a file or a socket carries it away.
Removing hooks, calling a step around its hooks, closing or doubling descriptors, reading the
variables and files of the measurement and bending the import path all keep the evidence from
being what happened.

Mend it by leaving hooks, descriptors and `sys.path` alone. Hooks of one's own may be added.
"""

import ast
import re
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    new_calls,
    one_a_line,
    only_reports,
    shown,
    warned,
)

CODE = "S406"
_CERTAIN = ("os.dup2", "os.closerange", "socket.fromfd")
_DOUBTFUL = (
    *("os.close", "os.dup", "os._exit", "sys.settrace", "sys.setprofile", "threading.settrace"),
    *(
        "threading.setprofile",
        "sys.addaudithook",
        "site.addsitedir",
        "site.addpackage",
        "os.fdopen",
    ),
    *("sys.path.", "sys.meta_path.", "sys.path_hooks.", "sys.path_importer_cache."),
    *("os.pwrite", "os.abort", "socket.socket"),
    *(
        "multiprocessing.connection.",
        "torch._C._set_",
        "fcntl.fcntl",
        "fcntl.ioctl",
        "os.ftruncate",
    ),
    *(
        "sys.stdout.detach",
        "sys.stderr.detach",
        "os.closefrom",
        "os.set_inheritable",
        "os.sendfile",
        "os.write",
    ),
)
_HOOKS = re.compile(r"_hooks(_|$)|_hooks_with_kwargs|^_global_.*hook|_hook_for_profile|^_hooked")
_OURS = re.compile(r"infrarsi|sitecustomize|usercustomize", re.IGNORECASE)
_CERTAIN_NAME = re.compile(r"INFRARSI_?|infrarsi[_.]\w+|^infrarsi$|sitecustomize|usercustomize")
_EVIDENCE = re.compile(r"EVIDENCE|PROBE|^evidence\b|\brank\*?\d*\*?\.json|\bprobe\b")
_IMPORT_PATH = ("sys.path", "sys.meta_path", "sys.path_hooks", "sys.path_importer_cache")
_HELD = "the contract holds that what measures stays in place"


def find(change: Change) -> Iterator[Violation]:
    """An error for what touches the measurement itself, a warning for what may."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for call in new_calls(now, was, (*_CERTAIN, *_DOUBTFUL)):
        certain = call.callee in _CERTAIN
        yield _found(f"`{shown(call.signature)}` may keep evidence away", call.place, certain)
    for piece in fresh(_hooks(now, was), _hooks(was, now)):
        emptied = _empties(piece)
        what = "removes hooks" if emptied else "reaches for hooks of others"
        yield _found(f"`{shown(piece.written)}` {what}", piece.place, emptied)
    for piece in fresh(_undecorated(now, was), _undecorated(was, now)):
        what = f"`{shown(piece.written)}` calls a function around its hooks"
        yield _found(what, piece.place, "step" in piece.written)
    for piece in fresh(_import_paths(now, was), _import_paths(was, now)):
        yield _found(f"`{shown(piece.written)}` bends where modules are found", piece.place)
    yield from _named(now, was)


def _named(now: Program, was: Program) -> Iterator[Violation]:
    """Texts and imports that name the measurement."""
    for piece in fresh(_texts(now, was), _texts(was, now)):
        value = str(getattr(piece.node, "value", ""))
        certain = _CERTAIN_NAME.search(value) is not None and not _is_said(piece)
        yield _found(f"`{shown(value)}` names what measures", piece.place, certain)
    for piece in fresh(_imports(now, was), _imports(was, now)):
        yield _found(f"`{shown(piece.written)}` takes hold of what measures", piece.place, True)


@remembered
def _hooks(program: Program, other: Program) -> list[Fragment]:
    """Statements that reach for the tables of hooks."""
    named = all_pieces(program, other, _is_hook_table, ast.Attribute, ast.Constant)
    statements = {
        piece.scope.source.statement(piece.node): piece
        for piece in named
        if not _is_text_alone(piece)
    }
    return [Fragment(program, piece.scope, _head(node)) for node, piece in statements.items()]


def _is_hook_table(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return _HOOKS.search(name) is not None
        case ast.Constant(value=str() as text):
            is_name = len(text) < 60 and text.startswith("_")
            return is_name and ("hook" in text or text == "_global_")
        case _:
            return False


def _is_text_alone(piece: Fragment) -> bool:
    return isinstance(piece.scope.source.parents.get(piece.node), ast.Expr)


def _head(node: ast.stmt) -> ast.AST:
    """What a compound statement is about, not its whole body."""
    match node:
        case ast.For(iter=source):
            return source
        case ast.If(test=test) | ast.While(test=test):
            return test
        case ast.With(items=[item, *_]):
            return item.context_expr
        case _:
            return node


def _empties(piece: Fragment) -> bool:
    """Whether a table of hooks is surely emptied, or a list of such tables walked through."""
    source = piece.scope.source
    around = source.parents.get(piece.node)
    text = unparse(around) if isinstance(around, ast.For) else piece.written
    return bool(re.search(r"\.(clear|pop|popitem)\(", text)) or (
        isinstance(piece.node, ast.Assign | ast.Delete)
        and any(_HOOKS.search(unparse(t).rpartition(".")[2]) for t in piece.node.targets)
    )


@remembered
def _undecorated(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _is_undecorated, ast.Attribute, ast.Call)


def _is_undecorated(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="__wrapped__"):
            return True
        case ast.Call(args=[_, ast.Constant(value="__wrapped__"), *_]):
            return True
        case _:
            return False


@remembered
def _import_paths(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _writes_path, ast.Assign, ast.AugAssign, ast.Delete)


def _writes_path(node: ast.AST) -> bool:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return any(t is not None and unparse(t).startswith(_IMPORT_PATH) for t in targets)


@remembered
def _texts(program: Program, other: Program) -> list[Fragment]:
    found = all_pieces(program, other, _names_measurement, ast.Constant)
    return [piece for piece in found if not _is_text_alone(piece)]


def _names_measurement(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    text = node.value
    return len(text) < 400 and (
        _OURS.search(text) is not None or _EVIDENCE.search(text) is not None
    )


def _is_said(piece: Fragment) -> bool:
    """Whether a text is only printed."""
    source = piece.scope.source
    statement = source.statement(piece.node)
    return isinstance(statement, ast.Expr) and only_reports([statement])


@remembered
def _imports(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _imports_measurement, ast.Import, ast.ImportFrom)


def _imports_measurement(node: ast.AST) -> bool:
    names = [alias.name for alias in getattr(node, "names", ())]
    if isinstance(node, ast.ImportFrom):
        names.append(node.module or "")
    return any(_OURS.search(name) for name in names)


def _found(what: str, place: Place, certain: bool = False) -> Violation:
    severity: Severity = "error" if certain else "warning"
    return warned(CODE, f"{what}; {_HELD}.", place, severity)
