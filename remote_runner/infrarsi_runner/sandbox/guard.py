"""Parent of a job where there are no namespaces: restricts it by Landlock and leaves no orphan.

    guard.py '{"readable": [...], "writable": [...], "restrict": true}' -- argv...

Run as a script, with the standard library only. It adopts every descendant that loses its parent
and kills them all when the job ends, when it is asked to (SIGTERM) or when the daemon dies. It
exits as the job did, with 128 + n for signal n. Landlock hides nothing, has no process namespace
and is not used against the network: ports can be allowed, addresses cannot, and ranks need both.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _DEVICE = 1 << 13, 1 << 14, 1 << 15
_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE
_FIRST_ABI = (1 << 13) - 1
_SCOPE_SOCKETS_AND_SIGNALS = 3
_SET_DEATH_SIGNAL, _SET_SUBREAPER, _NO_NEW_PRIVILEGES = 1, 36, 38

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32))


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 where it has none or it is switched off."""
    with contextlib.suppress(OSError):
        return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return 0


def restrict(readable: list[str], writable: list[str]) -> None:
    """Confine this process and its children for good; paths that do not exist are skipped."""
    abi = landlock_abi()
    rights = _FIRST_ABI
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE)):
        rights |= right if abi >= since else 0
    scoped = _SCOPE_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(
        _CREATE,
        ctypes.byref(_Ruleset(rights, 0, scoped)),
        ctypes.c_size_t(size),
        ctypes.c_uint32(0),
    )
    for path in readable:
        _allow(ruleset, path, rights & (_EXECUTE | _READ | _LIST))
    for path in writable:
        _allow(ruleset, path, rights)
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no new privileges")
    _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def main() -> int:
    """Start the job below and wait; the exit code is the job's."""
    setup, argv = json.loads(sys.argv[1]), sys.argv[3:]
    _libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, _leave)
    child = os.fork()
    if child == 0:
        _become(setup, argv)
    status = _wait_for(child)
    _kill_all()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(setup: dict[str, list[str]], argv: list[str]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    try:
        if setup["restrict"]:
            restrict(setup["readable"], setup["writable"])
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"guard: {argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _leave(number: int, frame: object) -> None:
    _kill_all()
    os._exit(128 + number)


def _kill_all() -> None:
    while True:
        pids = [
            int(pid)
            for task in Path("/proc/self/task").iterdir()
            for pid in (task / "children").read_text().split()
        ]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _allow(ruleset: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            beneath = _Beneath(rights if Path(path).is_dir() else rights & _FILES, fd)
            _call(
                _ADD,
                ctypes.c_int(ruleset),
                ctypes.c_int(1),
                ctypes.byref(beneath),
                ctypes.c_uint32(0),
            )
        finally:
            os.close(fd)


def _call(number: int, *arguments: object) -> int:
    answer = _libc.syscall(number, *arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


if __name__ == "__main__":
    sys.exit(main())
