"""W118: the processes that are timed do the work.

Work handed to a process that nobody times looks free. Starting processes, remote calls and
servers that were not there before is looked for. Loader workers are allowed.

Mend it by doing the work in the training processes.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee

CODE = "W118"
_STARTS = {
    *("Popen", "Process", "Pool", "ProcessPoolExecutor", "fork", "forkpty", "posix_spawn"),
    *("spawn", "start_processes", "rpc_sync", "rpc_async", "init_rpc", "remote", "execv"),
    *("system", "popen", "check_output", "check_call", "spawnv", "spawnvp", "SharedMemory"),
    *("create_subprocess_exec", "create_subprocess_shell", "SyncManager", "BaseManager"),
}
_OWNERS = (
    *("subprocess", "os", "multiprocessing", "torch.multiprocessing", "concurrent", "asyncio"),
    *("torch.distributed.rpc", "ray", "mp", "pty", "get_context", "ctx", "context"),
)


def find(change: Change) -> Iterator[Violation]:
    """A warning for each way to start work elsewhere that was not there."""
    if change.sides is None:
        return
    now, was = change.sides
    for call in added(_starts(now), _starts(was), callee):
        yield violation(
            CODE,
            f"`{call.signature[:60]}` may move work to another process; the contract holds the "
            "work of a step in the processes that are timed.",
            severity="warning",
            place=call.place,
        )


def _starts(program: Program) -> list[Call]:
    return [call for call in program.called(_STARTS) if not call.is_dead and _is_of_library(call)]


def _is_of_library(call: Call) -> bool:
    owner = call.callee.rpartition(".")[0]
    if not owner:
        return call.name in {
            "Popen",
            "ProcessPoolExecutor",
            "SharedMemory",
            "rpc_sync",
            "rpc_async",
        }
    return owner.startswith(_OWNERS) or "multiprocessing" in call.callee or "subprocess" in owner
