"""E501: as many processes as the contract holds.

More processes or devices make a step faster without making the training better, and fewer change
what is measured. The count is read from the launch line.

Mend it by restoring the launch line, or lock a new contract for the new machine.
"""

from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, Violation, place_of
from infrarsi.contract.catalogue import violation
from infrarsi.rules.change import Change

CODE = "E501"


def find(change: Change) -> Iterator[Violation]:
    """One finding, on the launch line where it is written in infrarsi.toml."""
    agreed = change.contract.workload.world_size
    now = change.count(change.fact("world_size"))
    if now is None or now == agreed:
        return
    text = change.sources.text(CONFIG_PATH)
    place = place_of(text, change.contract.job, "launch") if text is not None else None
    yield violation(
        CODE,
        f"{_processes(now)} instead of {agreed}; the contract holds {agreed}.",
        place=place,
    )


def _processes(count: int) -> str:
    return f"{count} process" if count == 1 else f"{count} processes"
