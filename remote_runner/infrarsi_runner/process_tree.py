"""A process and all its descendants, seen from outside through /proc.

Everything the runner knows of a job's processor time and memory, and every pause and kill, goes
through here. Works across the sandbox's process namespace, because the runner looks from the
outer one. Leaves out what the processes did: see `running`.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STOPPED = "TtZX"


class ProcessTree:
    """The tree below `root`, which is a process id of the runner's own namespace."""

    def __init__(self, root: int) -> None:
        """Remember the root; nothing is read yet."""
        self.root = root
        self._dead_cpu_s = 0.0
        self._live_cpu_s: dict[int, float] = {}

    def members(self) -> list[int]:
        """Process ids of the root and its descendants that exist now, parents first."""
        found = [self.root] if _state(self.root) else []
        for pid in found:
            found += _children(pid)
        return found

    def cpu_s(self) -> float:
        """Processor seconds used so far by every process ever seen in the tree."""
        live = {pid: cpu for pid in self.members() if (cpu := _cpu_s(pid)) is not None}
        for pid, cpu in self._live_cpu_s.items():
            if pid not in live:
                self._dead_cpu_s += cpu
        self._live_cpu_s = live
        return self._dead_cpu_s + sum(live.values())

    def pause(self, within_s: float = 5.0) -> bool:
        """Stop every process below the root; true once all are stopped and no new one appeared.

        The root is the sandbox's own process: it only waits, and must be able to end the job.
        """
        deadline = time.monotonic() + within_s
        while True:
            below = (pid for pid in self.members() if pid != self.root)
            running = [pid for pid in below if _state(pid) not in _STOPPED]
            if not running:
                return True
            _signal(running, signal.SIGSTOP)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0005)

    def resume(self) -> None:
        """Let every stopped process go on."""
        _signal(self.members(), signal.SIGCONT)

    def kill(self, within_s: float = 10.0) -> bool:
        """Kill the descendants, then the root; true once none is left but the root's zombie.

        Descendants go first so that their parents still count their processor time.
        """
        deadline = time.monotonic() + within_s
        while True:
            alive = [pid for pid in self.members() if _state(pid) not in "ZX"]
            if not alive:
                return True
            below = [pid for pid in alive if pid != self.root]
            patient = time.monotonic() < deadline - within_s / 2
            _signal(below if below and patient else alive, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)


def start_time(pid: int) -> int | None:
    """Clock ticks after boot at which the process started; with `pid` it names a process."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def memory_bytes(pid: int) -> tuple[int, int] | None:
    """(resident now, resident peak) of one process, or None if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    sizes = {
        k: int(v.split()[0]) * 1024
        for k, _, v in (x.partition(":") for x in lines)
        if k[:2] == "Vm"
    }
    return (sizes["VmRSS"], sizes["VmHWM"]) if "VmHWM" in sizes else None


def first_environment(pid: int) -> dict[str, str]:
    """The environment the process was started with; empty if it is gone or not ours."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition("=") for item in raw.decode(errors="replace").split("\0"))
    return {name: value for name, found, value in pairs if found}


def descends_from(pid: int, ancestor: int) -> bool:
    """Whether `ancestor` is `pid` itself or one of its parents."""
    while pid > 1:
        if pid == ancestor:
            return True
        fields = _stat(pid)
        if not fields:
            return False
        pid = int(fields[1])
    return pid == ancestor


def machine_memory() -> tuple[int, int]:
    """(available, total) bytes of the machine's memory."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = {k: int(v.split()[0]) * 1024 for k, _, v in (x.partition(":") for x in lines)}
    return sizes["MemAvailable"], sizes["MemTotal"]


def n_kernel_oom_kills() -> int:
    """How many processes the kernel has killed for memory since boot."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def processes_of_user() -> Iterable[int]:
    """Process ids this user may look into."""
    return (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit())


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _state(pid: int) -> str:
    fields = _stat(pid)
    return fields[0] if fields else ""


def _cpu_s(pid: int) -> float | None:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S if fields else None


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
    found: list[int] = []
    for task in tasks:
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
