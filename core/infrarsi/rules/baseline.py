"""Whether sources are what a lock was made of.

A job may be locked with edits that are not committed yet: then the baseline commit is not what was
locked, and comparing with it would find the user's own edits.
"""

from infrarsi.contract import Lock
from infrarsi.reading import Program


def is_locked_state(lock: Lock, program: Program) -> bool:
    """Whether every fact the contract read from source reads the same in the program."""
    for fact in lock.contract.facts:
        if fact.value is None or fact.given:
            continue
        read = program.reading.fact(fact.name)
        if read is None or read.value != fact.value:
            return False
    return True
