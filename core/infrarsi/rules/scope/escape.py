"""S407: the job starts no processes and leaves nothing to run when it ends.

What runs in another process, in a signal's handler or at exit is outside the steps that are
timed, and may go on while the other side of a comparison has its turn. Newly starting processes,
leaving the session, loading libraries and registering what runs later are looked for. Workers of
a `DataLoader` and threads that fetch rows are allowed.

Mend it by doing the work in the training process, within the loop.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.reading import Call, Program
from infrarsi.reading.values import Symbol
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    new_calls,
    new_decorators,
    one_a_line,
    shown,
    texts_in,
    warned,
)

CODE = "S407"
_CERTAIN = (
    *("os.fork", "os.forkpty", "os.setsid", "os.execv", "os.execve", "os.execvp", "os.execvpe"),
    *("os.execl", "os.execle", "os.execlp", "os.execlpe", "pty.fork", "pty.spawn", "os.setpgrp"),
    *("os.setpgid", "os.posix_spawn", "os.posix_spawnp", "ctypes.pythonapi.", "os.daemon"),
)
_DOUBTFUL = (
    *("subprocess.", "os.system", "os.popen", "os.spawn", "multiprocessing.", "ctypes.", "cffi."),
    *("torch.multiprocessing.", "concurrent.futures.ProcessPoolExecutor", "signal.signal"),
    *("signal.setitimer", "signal.alarm", "signal.pthread_kill", "signal.raise_signal", "os.kill"),
    *("os.killpg", "os.register_at_fork", "weakref.finalize", "asyncio.create_subprocess_exec"),
    *("asyncio.create_subprocess_shell", "signal.siginterrupt", "faulthandler.", "sched.scheduler"),
    *("atexit.register", "atexit.unregister", "threading.Timer", "os.spawnv", "os.spawnl"),
    *("os.spawnve", "os.spawnlp", "os.spawnvp", "os.spawnle", "concurrent.futures.process."),
    *("threading._register_atexit", "os.sched_setaffinity", "code.interact", "pdb.set_trace"),
    *("torch.cuda.CUDAPluggableAllocator", "ptrace.", "pexpect.", "sh.", "joblib.Parallel"),
)
_HARMLESS = (
    *("multiprocessing.set_start_method", "torch.multiprocessing.set_start_method"),
    *("multiprocessing.cpu_count", "torch.multiprocessing.set_sharing_strategy"),
    *("multiprocessing.get_context", "multiprocessing.current_process", "faulthandler.enable"),
    *("torch.multiprocessing.get_context", "multiprocessing.freeze_support", "signal.getsignal"),
    *("multiprocessing.Lock", "multiprocessing.Value", "torch.multiprocessing.cpu_count"),
)
_HELD = "the contract holds that the job starts no processes and leaves nothing to run later"


def find(change: Change) -> Iterator[Violation]:
    """An error for what leaves the process, a warning for what may."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for call in new_calls(now, was, _CERTAIN):
        yield _found(f"`{shown(call.signature)}` leaves the process that is timed", call, True)
    for call in new_calls(now, was, _DOUBTFUL):
        if call.callee.startswith(_CERTAIN) or call.callee in _HARMLESS or _cleans_up(call):
            continue
        detached = any(keyword.arg == "start_new_session" for keyword in call.site.call.keywords)
        yield _found(f"`{shown(call.signature)}` runs outside of the steps", call, detached)
    for piece in new_decorators(now, was, ("atexit.",)):
        what = f"`@{shown(piece.written)}` runs at an end that no step contains"
        yield warned(CODE, f"{what}; {_HELD}.", piece.place)
    for piece in fresh(_finalizers(now, was), _finalizers(was, now)):
        what = f"`{getattr(piece.node, 'name', '__del__')}` runs at an end that no step contains"
        yield warned(CODE, f"{what}; {_HELD}.", piece.place)
    for piece in fresh(_preloads(now, was), _preloads(was, now)):
        what = f"`{shown(piece.written)}` names a library to be loaded ahead of others"
        yield warned(CODE, f"{what}; {_HELD}.", piece.place, "error" if _sets(piece) else "warning")


def _cleans_up(call: Call) -> bool:
    """`atexit.register(dist.destroy_process_group)` and the like: functions of a library."""
    if not call.callee.startswith("atexit") or not call.site.call.args:
        return False
    value = call.program.evaluator.value(call.site.call.args[0], call.frame)
    return isinstance(value, Symbol) and value.name.endswith(
        ("destroy_process_group", "shutdown", "close", "cleanup", "finish")
    )


@remembered
def _finalizers(program: Program, other: Program) -> list[Fragment]:
    """Methods that run when an object goes: their heads."""
    return [
        Fragment(program, piece.scope, piece.node)
        for piece in all_pieces(program, other, _is_finalizer, ast.FunctionDef)
    ]


def _is_finalizer(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__del__"


@remembered
def _preloads(program: Program, other: Program) -> list[Fragment]:
    texts = all_pieces(program, other, _names_preload, ast.Constant)
    return [
        piece
        for piece in texts
        if not isinstance(piece.scope.source.parents.get(piece.node), ast.Expr)
    ]


def _sets(piece: Fragment) -> bool:
    """Whether a variable is set, not only looked at."""
    match piece.scope.source.parents.get(piece.node):
        case ast.Subscript(ctx=ast.Store()) | ast.Dict():
            return True
        case ast.Call(func=ast.Attribute(attr="setdefault" | "putenv")):
            return True
        case _:
            return False


def _names_preload(node: ast.AST) -> bool:
    return any(
        text in {"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"}
        for text in texts_in(node)
        if isinstance(node, ast.Constant)
    )


def _found(what: str, call: Call, certain: bool) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", call.place, "error" if certain else "warning")
