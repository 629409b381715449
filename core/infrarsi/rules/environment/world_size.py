"""E501: as many processes as the contract holds, on what the baseline had of the machine.

More processes or devices make a step faster without making the training better, and fewer change
what is measured. The count is read from the launch line. Where the baseline pins its threads or
devices these stay, and nothing asks the system for a better place.

Mend it by restoring the launch line, or lock a new contract for the new machine.
"""

from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, Severity, Violation, place_of
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee
from infrarsi.rules.fragments import call_key

CODE = "E501"
_PINS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
    *("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "NVIDIA_VISIBLE_DEVICES"),
)
_THREADS = ("set_num_threads", "set_num_interop_threads", "threadpool_limits")
_PLACES = {
    *("nice", "setpriority", "sched_setaffinity", "sched_setscheduler", "cpu_affinity", "ionice"),
    *(
        "pthread_setaffinity",
        "nvmlDeviceSetPowerManagementLimit",
        "nvmlDeviceSetApplicationsClocks",
    ),
    *("nvmlDeviceSetGpuLockedClocks", "numa_bind", "sched_setparam"),
}


def find(change: Change) -> Iterator[Violation]:
    """One finding for the count, on the launch line where it is in infrarsi.toml; then the rest."""
    agreed = change.contract.workload.world_size
    now = change.count(change.fact("world_size"))
    if now is not None and now != agreed:
        yield violation(
            CODE,
            f"{_processes(now)} instead of {agreed}; the contract holds {agreed}.",
            place=_launch_place(change),
        )
    if change.sides is not None:
        yield from _pinned(change, *change.sides)


def _pinned(change: Change, now: Program, was: Program) -> Iterator[Violation]:
    """Pins of the baseline that were lifted, and priorities and devices that are asked for."""
    for name in _PINS:
        held, value = was.launch.env.get(name), now.launch.env.get(name)
        if held is not None and value != held:
            yield violation(
                CODE,
                f"`{name}` is {value or 'not set'} instead of {held}; the contract holds the "
                "threads and devices the baseline is pinned to.",
                place=_launch_place(change),
            )
    before = [call for call in was.named(*_THREADS) if call.site.call.args]
    after = [call for call in now.named(*_THREADS) if call.site.call.args]
    for call in added(after, before, call_key) if before else ():
        yield _asked(
            f"Threads are set by `{call.signature[:50]}`, before by `{before[0].signature[:50]}`",
            call,
            before[0],
            "error",
        )
    for call in before if before and not after else ():
        yield _asked(f"`{call.signature[:50]}` is gone", None, call, "warning")
    for call in added(_asking(now), _asking(was), callee):
        yield _asked(f"`{call.signature[:60]}` asks for a better place", call, None, "error")


def _asking(program: Program) -> list[Call]:
    return [call for call in program.called(_PLACES) if not call.is_dead]


def _asked(what: str, call: Call | None, held: Call | None, severity: Severity) -> Violation:
    return violation(
        CODE,
        f"{what}; the contract holds what the baseline has of the machine.",
        severity=severity,
        place=call.place if call is not None else None,
        contract_place=held.place if held is not None else None,
    )


def _launch_place(change: Change) -> Place | None:
    text = change.sources.text(CONFIG_PATH)
    return place_of(text, change.contract.job, "launch") if text is not None else None


def _processes(count: int) -> str:
    return f"{count} process" if count == 1 else f"{count} processes"
