"""What is declared and must not change, and the lock that freezes it."""

from infrarsi.contract.catalogue import CATALOGUE, Code, unsettled_by_runs
from infrarsi.contract.config import CONFIG_PATH, Config, JobConfig, add_job, parse_config, place_of
from infrarsi.contract.contract import (
    EquivalencePolicy,
    Fact,
    Lock,
    Precision,
    Protocol,
    Scope,
    TaskContract,
    Workload,
)
from infrarsi.contract.lock import LOCK_PATH, make_lock, read_locks, verify_digest, write_locks
from infrarsi.contract.scope import matches
from infrarsi.contract.violation import Family, Fix, Severity, Violation

__all__ = [
    "CATALOGUE",
    "CONFIG_PATH",
    "LOCK_PATH",
    "Code",
    "Config",
    "EquivalencePolicy",
    "Fact",
    "Family",
    "Fix",
    "JobConfig",
    "Lock",
    "Precision",
    "Protocol",
    "Scope",
    "Severity",
    "TaskContract",
    "Violation",
    "Workload",
    "add_job",
    "make_lock",
    "matches",
    "parse_config",
    "place_of",
    "read_locks",
    "unsettled_by_runs",
    "verify_digest",
    "write_locks",
]
