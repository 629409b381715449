"""When a job has taken too much memory, judged from outside it.

The limit proper is set inside each rank, where the failure can be caught and told from a crash;
this guard stands behind it for a rank that evades it, and for jobs that have no budget at all.
"""

from infrarsi.units import GIB, MIB

BASE_ALLOWANCE_BYTES = 1 * GIB
"""What a rank may use before anything is known of its base: an interpreter with torch loaded."""

_OVER_BUDGET = 1.15
_MACHINE_RESERVE_FRAC = 0.03
_MACHINE_RESERVE_BYTES = 512 * MIB


def rank_limit_bytes(base_bytes: int | None, budget_bytes: int | None) -> int | None:
    """Resident bytes at which a rank is ended; None where it has no budget."""
    if budget_bytes is None:
        return None
    base = BASE_ALLOWANCE_BYTES if base_bytes is None else base_bytes
    return base + int(_OVER_BUDGET * budget_bytes)


def machine_is_full(available_bytes: int, total_bytes: int) -> bool:
    """Whether the machine itself is about to run out, and the job has to go first."""
    reserve = max(_MACHINE_RESERVE_BYTES, int(_MACHINE_RESERVE_FRAC * total_bytes))
    return available_bytes < min(reserve, total_bytes // 4)
