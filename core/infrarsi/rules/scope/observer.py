"""S402: the code does the same whether or not anybody looks.

A program that finds out that it is measured (by variables of the environment, loaded modules,
its parent process, a tracer, a sandbox, open sockets or the pauses a clock shows) and then works
otherwise makes every measurement worthless. Newly asking for such things, where the answer
decides something, is looked for.

Mend it by taking the question out. Which rank a process is may be asked, and so may whether a
device is there.
"""

import ast
import re
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.reading import Call, Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    calls_of,
    decides,
    new_calls,
    one_a_line,
    shown,
    tested_names,
    texts_in,
    warned,
)

CODE = "S402"
_RANKS = re.compile(
    r"RANK|WORLD_SIZE|MASTER_|CUDA_VISIBLE|SLURM|OMPI_|PMI_|NCCL_|_NUM_THREADS|LOCAL_|NODE|TORCHELASTIC"
)
_ALWAYS = (
    *("sys.gettrace", "sys.getprofile", "threading.gettrace", "os.getppid", "os.getpgid"),
    *("psutil.process_iter", "psutil.pids", "os.getsid", "sys.monitoring.get_tool"),
)
_WHERE_DECIDING = (
    *("socket.gethostname", "platform.node", "os.uname", "platform.uname", "getpass.getuser"),
    *("os.getlogin", "os.getuid", "os.geteuid", "os.getloadavg", "threading.active_count"),
    *("threading.enumerate", "signal.getsignal", "resource.getrlimit", "psutil.Process"),
    *("psutil.cpu_percent", "psutil.virtual_memory", "psutil.net_connections", "os.getpgrp"),
    *("torch.compiler.is_compiling", "torch._dynamo.is_compiling", "os.fstat", "select.select"),
    *("stat.S_ISSOCK", "socket.fromfd", "select.poll", "os.isatty", "sys.stdout.isatty"),
    *("sys.stderr.isatty", "torch.compiler.is_dynamo_compiling", "torch.is_deterministic"),
    *("importlib.util.find_spec", "pkgutil.find_loader", "resource.getrusage", "os.times"),
    *("os.stat", "os.path.getmtime", "os.sched_getscheduler", "os.getpriority", "uuid.getnode"),
    *("torch.is_anomaly_enabled", "torch.are_deterministic_algorithms_enabled"),
    *("sys.stdin.isatty", "os.get_terminal_size", "shutil.which", "importlib.metadata."),
)
_CLOCKS = tuple(
    f"time.{name}{ns}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for ns in ("", "_ns")
)
_PLACES = re.compile(
    r"^/proc\b|^/sys/|cgroup|^/\.dockerenv|TracerPid|^/run/|machine-id|^/dev/fd|seccomp|NSpid"
)
_OURS = re.compile(r"infrarsi|sitecustomize", re.IGNORECASE)
_HELD = "the contract holds that the code does the same whether or not it is watched"


def find(change: Change) -> Iterator[Violation]:
    """An error where the guard itself is asked for, a warning for other questions."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for call in new_calls(now, was, _ALWAYS):
        yield _found(f"`{shown(call.signature)}` asks who is watching", call, _certain(call))
    for piece in fresh(_questions(now, was), _questions(was, now)):
        yield _found(f"`{shown(piece.written)}` decides what is done", piece, "warning")
    for piece in fresh(_variables(now, was), _variables(was, now)):
        certain = any(_OURS.search(text) for text in texts_in(piece.node))
        yield _found(
            f"`{shown(piece.text)}` of the environment decides what is done",
            piece,
            "error" if certain else "warning",
        )
    for piece in fresh(_system_files(now, was), _system_files(was, now)):
        yield _found(f"`{shown(piece.written)}` looks at the system around", piece, "warning")
    for piece in fresh(_pauses(now, was), _pauses(was, now)):
        yield _found(f"`{shown(piece.written)}` lets a clock decide", piece, "warning")


def _certain(call: Call) -> Severity:
    """A tracer that decides something is asked for by a program that hides from it."""
    fragment = Fragment(call.program, call.site.scope, call.site.call)
    return "error" if "trace" in call.name and decides(fragment) else "warning"


@remembered
def _questions(program: Program, other: Program) -> list[Fragment]:
    found = [_piece(call) for call in calls_of(program, other, _WHERE_DECIDING)]
    modules = all_pieces(program, other, _is_module_question, ast.Compare, ast.Subscript, ast.Call)
    flags = all_pieces(program, other, _is_flag, ast.Attribute)
    return [piece for piece in (*found, *modules, *flags) if decides(piece)]


def _is_module_question(node: ast.AST) -> bool:
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return unparse(right) in {"sys.modules", "modules", "sys.argv", "argv"}
        case ast.Call(func=ast.Attribute(attr="get" | "keys", value=ast.Attribute(attr="modules"))):
            return True
        case _:
            return False


def _is_flag(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="disable", value=ast.Attribute(attr="config")):
            return True
        case ast.Attribute(attr="flags" | "orig_argv", value=ast.Name(id="sys")):
            return True
        case _:
            return False


@remembered
def _variables(program: Program, other: Program) -> list[Fragment]:
    """Reads of variables that decide something, and reads of all of them at once."""
    found: list[Fragment] = []
    for piece in all_pieces(program, other, _is_environment, ast.Attribute, ast.Name):
        source = piece.scope.source
        parent = source.parents.get(piece.node)
        while isinstance(parent, ast.Attribute | ast.comprehension | ast.Starred):
            parent = source.parents.get(parent)
        if parent is None or _is_written(source.parents.get(parent, parent), parent):
            continue
        read = Fragment(program, piece.scope, parent)
        if _is_whole(parent, piece.node) or (not _is_rank(read) and _is_decided(read)):
            found.append(read)
    for call in calls_of(program, other, ("os.getenv", "os.getenvb")):
        read = _piece(call)
        if not _is_rank(read) and _is_decided(read):
            found.append(read)
    return found


def _is_environment(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="environ" | "environb"):
            return True
        case ast.Name(id="environ", ctx=ast.Load()):
            return True
        case _:
            return False


def _is_written(around: ast.AST, node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return True
    match node:
        case ast.Call(func=ast.Attribute(attr="setdefault" | "update" | "pop")):
            return isinstance(around, ast.Expr)
        case _:
            return False


def _is_whole(parent: ast.AST, environ: ast.AST) -> bool:
    match parent:
        case ast.Call(func=ast.Attribute(attr="items" | "values" | "keys", value=owner)):
            return owner is environ
        case ast.Call(args=args) if environ in args:
            return True
        case ast.For(iter=source):
            return source is environ
        case ast.DictComp() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.Dict():
            return True
        case _:
            return False


def _is_rank(read: Fragment) -> bool:
    texts = list(texts_in(read.node)) or [read.text]
    return any(_RANKS.search(text) for text in texts)


def _is_decided(read: Fragment) -> bool:
    return decides(read)


@remembered
def _system_files(program: Program, other: Program) -> list[Fragment]:
    """Texts that name what the system tells of a process."""
    texts = all_pieces(program, other, _names_system, ast.Constant)
    return [
        Fragment(program, piece.scope, piece.scope.source.parents.get(piece.node, piece.node))
        for piece in texts
        if not isinstance(piece.scope.source.parents.get(piece.node), ast.Expr)
    ]


def _names_system(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return len(node.value) < 200 and _PLACES.search(node.value) is not None


@remembered
def _pauses(program: Program, other: Program) -> list[Fragment]:
    """Comparisons of what a clock says, where more than a log line depends on it."""
    if not calls_of(program, other, _CLOCKS):
        return []
    clocked = _clocked_names(program, other)
    found: list[Fragment] = []
    for piece in all_pieces(program, other, lambda _: True, ast.Compare):
        if not _reads_clock(piece, clocked):
            continue
        statement = piece.scope.source.statement(piece.node)
        if isinstance(statement, ast.Assert):
            continue
        if decides(piece):
            found.append(piece)
    return found


@remembered
def _clocked_names(program: Program, other: Program) -> frozenset[str]:
    """Names that hold a time, directly or computed from one in the same statement."""
    names: set[str] = set()
    for call in calls_of(program, other, _CLOCKS):
        match call.site.scope.source.statement(call.site.call):
            case ast.Assign(targets=targets):
                names |= {name for target in targets for name in _names(target)}
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                names |= set(_names(target))
            case _:
                pass
    more = {
        name
        for piece in all_pieces(program, other, _is_difference, ast.Assign)
        if set(_names(getattr(piece.node, "value", piece.node))) & names
        for target in getattr(piece.node, "targets", ())
        for name in _names(target)
    }
    return frozenset((names | more) - {"self"}) & tested_names(program)


def _is_difference(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) for inner in walk(node.value)
    )


def _reads_clock(piece: Fragment, clocked: frozenset[str]) -> bool:
    if any(name in clocked for name in _names(piece.node)):
        return True
    return any(
        isinstance(inner, ast.Call) and unparse(inner.func) in _CLOCKS for inner in walk(piece.node)
    )


def _names(node: ast.AST) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def _piece(call: Call) -> Fragment:
    return Fragment(call.program, call.site.scope, call.site.call)


def _found(what: str, at: Call | Fragment, severity: Severity) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", at.place, severity)
