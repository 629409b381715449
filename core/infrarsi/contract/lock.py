"""The lock: a contract frozen under a digest, and the file that holds one for each job.

Hashing the locked files and naming the baseline commit are the caller's work; here is no I/O.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from infrarsi.contract.contract import Lock, TaskContract
from infrarsi.errors import ConfigError
from infrarsi.frozen import Frozen

LOCK_PATH = ".infrarsi/contract.lock.json"
"""Where the lock file stands, relative to the workspace root."""


class LockFile(Frozen):
    """The whole of `.infrarsi/contract.lock.json`."""

    version: Literal[1] = 1
    jobs: dict[str, Lock] = {}


def make_lock(
    contract: TaskContract, locked_files: Mapping[str, str], baseline_commit: str
) -> Lock:
    """Freeze a contract.

    Args:
        contract: what must not change.
        locked_files: SHA-256 in hexadecimal of every file the scope locks, by path.
        baseline_commit: the commit whose tree is the untouched baseline.
    """
    unsigned = Lock(
        contract=contract,
        locked_files=dict(sorted(locked_files.items())),
        baseline_commit=baseline_commit,
        digest="",
    )
    return unsigned.model_copy(update={"digest": _digest(unsigned)})


def verify_digest(lock: Lock) -> bool:
    """Whether the lock still says what it said when it was made."""
    return lock.digest == _digest(lock)


def read_locks(text: str) -> dict[str, Lock]:
    """Read a lock file's text: one lock for each job.

    Raises:
        ConfigError: it is not a lock file, or a lock was changed by hand.
    """
    try:
        locks = LockFile.model_validate_json(text).jobs
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(
            f"{LOCK_PATH} cannot be read: {where}: {first['msg']}.",
            "Restore it from git, or run `infrarsi lock` again.",
        ) from error
    for name, lock in locks.items():
        if not verify_digest(lock) or lock.contract.job != name:
            raise ConfigError(
                f"The lock of job `{name}` in {LOCK_PATH} was changed after it was made.",
                "Restore it from git, or run `infrarsi lock` again to agree to a new contract.",
            )
    return locks


def write_locks(locks: Mapping[str, Lock]) -> str:
    """The lock file's text: stable, indented, one trailing newline."""
    content = LockFile(jobs=dict(sorted(locks.items()))).model_dump(mode="json")
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _digest(lock: Lock) -> str:
    content: dict[str, Any] = lock.model_dump(mode="json", exclude={"digest"})
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
