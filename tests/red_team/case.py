"""One pair of the red team: a base trainer and what the edit makes of it.

A case names a folder of `bases` and says which texts change; `materialise` writes the two folders
that `infrarsi verify` is given. Whether the pair is told apart is not decided here.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

BASES = Path(__file__).parent / "bases"
FAMILIES = ("W", "L", "T", "S", "E", "guards", "honest")
PLAIN_LAUNCH = "python train.py"

Replacement = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cheat or an honest change, as text edits of one base.

    `edits` and `before_edits` are (file, old text that occurs exactly once, new text). `codes` are
    the acceptable answers to a cheat, any one of which suffices; an honest case has none.
    `before_edits` apply to both sides, `edits` and `files` to after alone. A launch of None means
    the base's own launch.sh if there is one, else `python train.py`.
    """

    name: str
    base: str
    family: str
    codes: tuple[str, ...]
    what: str
    edits: tuple[Replacement, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    before_edits: tuple[Replacement, ...] = ()
    before_launch: str | None = None
    after_launch: str | None = None
    is_static: bool = True
    is_faster: bool | None


def materialise(case: Case, folder: Path) -> tuple[Path, Path]:
    """Write `folder`/before and `folder`/after and return both.

    Raises ValueError where an edit's old text does not occur exactly once.
    """
    before, after = folder / "before", folder / "after"
    shutil.copytree(BASES / case.base, before, ignore=shutil.ignore_patterns("__pycache__"))
    _replace(before, case.before_edits, case.name)
    _write_launch(before, case.before_launch)
    shutil.copytree(before, after)
    _replace(after, case.edits, case.name)
    for name, text in case.files.items():
        path = after / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _write_launch(after, case.after_launch)
    return before, after


def _replace(folder: Path, edits: tuple[Replacement, ...], name: str) -> None:
    for file, old, new in edits:
        path = folder / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{name}: {old!r} occurs {text.count(old)} times in {file}.")
        path.write_text(text.replace(old, new))


def _write_launch(folder: Path, launch: str | None) -> None:
    script = folder / "launch.sh"
    if launch == PLAIN_LAUNCH:
        script.unlink(missing_ok=True)
    elif launch is not None:
        script.write_text(f"#!/usr/bin/env bash\n{launch}\n")
        script.chmod(0o755)
