"""Memory of this process: resident now and at peak, the budget, and the text of a failure.

`ru_maxrss` is not used: a child inherits its parent's. Limits are virtual, peaks resident.
"""

import re

UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
REQUESTED = (
    re.compile(r"you tried to allocate (\d+) bytes()", re.IGNORECASE),
    re.compile(r"tried to allocate ([\d.]+)\s*([KMGT]?i?B)?", re.IGNORECASE),
    re.compile(r"unable to allocate ([\d.]+)\s*([KMGT]?i?B)", re.IGNORECASE),
)
OUT_OF_MEMORY = (
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "cuda out of memory",
    "out of memory",
    "std::bad_alloc",
    "cannot allocate memory",
    "can't start new thread",
)


def status_bytes(key):
    """A size of /proc/self/status in bytes; 0 where there is none."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def limit_data(budget):
    """Allow `budget` bytes of data beyond what this process has now (soft RLIMIT_DATA)."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = status_bytes("VmData") + budget
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def is_out_of_memory(error):
    """Whether an exception says that memory ran out, on whatever device."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, (RuntimeError, OSError)) and any(t in text for t in OUT_OF_MEMORY)


def requested_bytes(message):
    """The size of the request that failed, where the message names it."""
    for pattern in REQUESTED:
        match = pattern.search(message)
        if match:
            unit = (match.group(2) or "").upper()
            return int(float(match.group(1)) * UNITS.get(unit, 1))
    return None
