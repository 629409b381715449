"""Reading what the probe left behind: files a job could write, so nothing in them is trusted.

Links are not followed, sizes are limited, and what does not fit the schema counts as missing.
"""

import os
import re
import stat
from pathlib import Path
from typing import Any

import pydantic_core

from infrarsi.wire.probe import RankEvidence

_LIMIT_BYTES = 128 << 20
_LIMIT_RANKS = 4096
_NAME = re.compile(r"rank(\d{1,4})\.json")


def read_evidence(
    folder: Path, moved: tuple[str, str] | None = None
) -> tuple[tuple[RankEvidence, ...], tuple[str, ...]]:
    """The evidence of every rank, by rank, and a sentence for each file that cannot be used.

    `moved` is (path the job ran at, path to call it by): strings that begin with the first are
    made to begin with the second.
    """
    found: list[RankEvidence] = []
    problems: list[str] = []
    for rank, name in _names(folder):
        try:
            evidence = _parse(_read(folder / name), moved)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            problems.append(f"The evidence of rank {rank} cannot be used: {reason}")
            continue
        if evidence.rank == rank:
            found.append(evidence)
        else:
            problems.append(f"{name} says it is of rank {evidence.rank}.")
    return tuple(found), tuple(problems)


def _names(folder: Path) -> list[tuple[int, str]]:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return []
    matches = (_NAME.fullmatch(name) for name in names)
    return sorted((int(m[1]), m[0]) for m in matches if m)[:_LIMIT_RANKS]


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > _LIMIT_BYTES:
            raise ValueError(f"{status.st_size} bytes are too many")
        return file.read(_LIMIT_BYTES)


def _parse(raw: bytes, moved: tuple[str, str] | None) -> RankEvidence:
    if moved is None:
        return RankEvidence.model_validate_json(raw)
    value = _renamed(pydantic_core.from_json(raw, allow_inf_nan=False), *moved)
    return RankEvidence.model_validate_json(pydantic_core.to_json(value))


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return new + value[len(old) :] if value.startswith(old) else value
    if isinstance(value, list):
        return [_renamed(item, old, new) for item in value]
    if isinstance(value, dict):
        return {key: _renamed(item, old, new) for key, item in value.items()}
    return value
