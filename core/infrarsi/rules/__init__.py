"""Static rules: what an edit breaks, told from source alone. One file a rule.

A rule judges the change against the contract, never a file's style: an untouched baseline has no
findings. What a rule cannot tell it leaves to a run. A rule's docstring is its help page.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from infrarsi.contract import Lock, Violation
from infrarsi.reading import Reading, Sources
from infrarsi.rules import (
    effective_batch,
    locked_file,
    low_precision_weights,
    sequence_length,
    world_size,
)
from infrarsi.rules.change import Change

Rule = Callable[[Change], Iterator[Violation]]

_LOGGER = logging.getLogger(__name__)
_MODULES: tuple[ModuleType, ...] = (
    effective_batch,
    sequence_length,
    low_precision_weights,
    locked_file,
    world_size,
)
RULES: dict[str, Rule] = {
    effective_batch.CODE: effective_batch.find,
    sequence_length.CODE: sequence_length.find,
    low_precision_weights.CODE: low_precision_weights.find,
    locked_file.CODE: locked_file.find,
    world_size.CODE: world_size.find,
}
"""Every static rule by its code."""


def check_change(
    lock: Lock,
    reading: Reading,
    sources: Sources,
    before: Reading | None = None,
    changed_files: Mapping[str, str] | None = None,
) -> tuple[Violation, ...]:
    """Hold the present sources against a lock.

    Args:
        lock: the frozen contract.
        reading: the present sources, read with the present launch.
        sources: the texts the reading was made from; fixes are computed on them.
        before: the reading of the baseline, where there is one.
        changed_files: present SHA-256 by path for locked files, "" for one that is gone.

    A rule that fails costs one log line and its own findings only.
    """
    return run_rules(RULES, Change(lock, reading, sources, before, changed_files))


def run_rules(rules: Mapping[str, Rule], change: Change) -> tuple[Violation, ...]:
    """The findings of the rules, in their order."""
    found: list[Violation] = []
    for code, rule in rules.items():
        try:
            found += rule(change)
        except Exception as error:  # noqa: BLE001 (one rule must not cost the others)
            _LOGGER.error("rule %s failed: %r", code, error)
    return tuple(found)


def help_page(code: str) -> str:
    """The help page of a rule; KeyError where no static rule has that code."""
    for module in _MODULES:
        if code == module.CODE:
            return (module.__doc__ or "").strip()
    raise KeyError(code)


__all__ = ["RULES", "Change", "Rule", "check_change", "help_page", "run_rules"]
