"""Static rules: what an edit breaks, told from source alone. One file a rule, one folder a family.

A rule judges the change against the contract, never a file's style: an untouched baseline has no
findings. What a rule cannot tell it leaves to a run. A rule's docstring is its help page.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from infrarsi.contract import Lock, Violation
from infrarsi.reading import Program
from infrarsi.rules import environment, loss, scope, timing, workload
from infrarsi.rules.baseline import is_locked_state
from infrarsi.rules.change import Change

Rule = Callable[[Change], Iterator[Violation]]

_LOGGER = logging.getLogger(__name__)
_FAMILIES = (workload, loss, timing, scope, environment)
_MODULES: dict[str, ModuleType] = {
    module.CODE: module for family in _FAMILIES for module in family.MODULES
}
RULES: dict[str, Rule] = {code: module.find for code, module in _MODULES.items()}
"""Every static rule by its code."""


def check_change(
    lock: Lock,
    now: Program,
    was: Program | None = None,
    changed_files: Mapping[str, str] | None = None,
) -> tuple[Violation, ...]:
    """Hold the present sources against a lock.

    Args:
        lock: the frozen contract.
        now: the present sources under the present launch.
        was: the baseline, where there is one.
        changed_files: present SHA-256 by path for locked files, "" for one that is gone.

    Where `was` is not what was locked (the job was locked with edits that are not committed yet)
    nothing is compared with it. A rule that fails costs one log line and its own findings only.
    """
    if was is not None and not is_locked_state(lock, was):
        was = None
    return run_rules(RULES, Change(lock, now, was, changed_files))


def run_rules(rules: Mapping[str, Rule], change: Change) -> tuple[Violation, ...]:
    """The findings of the rules, in their order."""
    trace = change.now.trace
    trace.subjects["change"] = change
    found: list[Violation] = []
    for code, rule in rules.items():
        try:
            found += trace.ask(None, ("rule", code), lambda rule=rule: _findings(rule, change))
        except Exception as error:  # noqa: BLE001 (one rule must not cost the others)
            _LOGGER.error("rule %s failed: %r", code, error)
    return tuple(found)


def _findings(rule: Rule, change: Change) -> tuple[Violation, ...]:
    change.now.trace.look("change", _agreed)
    return tuple(rule(change))


def _agreed(change: Change) -> tuple[Lock, Program | None, Mapping[str, str] | None]:
    return change.lock, change.was, change.file_hashes


def help_page(code: str) -> str:
    """The help page of a rule; KeyError where no static rule has that code."""
    return (_MODULES[code].__doc__ or "").strip()


__all__ = ["RULES", "Change", "Rule", "check_change", "help_page", "run_rules"]
