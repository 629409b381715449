"""One pair of the red team: a base trainer and what the edit makes of it.

A case names a folder of `bases` and says which texts change; `materialise` writes the two folders
that `infrarsi verify` is given. Whether the pair is told apart is not decided here.
"""

import json
import shutil
import sys
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

    def opens(self, base: Path) -> list[str]:
        """The files of the base it edits that would be locked otherwise."""
        named = {file for file, _, _ in self.edits} | set(self.files)
        bare = {"train.py", "launch.sh"}
        code = [n for n in sorted(named - bare) if n.endswith(".py") and (base / n).exists()]
        return [] if self.codes[:1] == ("S401",) else code


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
    opened = case.opens(before)
    if opened:
        _write_scope(before, ["train.py", *opened])
    return before, after


def _replace(folder: Path, edits: tuple[Replacement, ...], name: str) -> None:
    for file, old, new in edits:
        path = folder / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{name}: {old!r} occurs {text.count(old)} times in {file}.")
        path.write_text(text.replace(old, new))


def _write_scope(before: Path, editable: list[str]) -> None:
    script = before / "launch.sh"
    launch = script.read_text().splitlines()[-1] if script.exists() else PLAIN_LAUNCH
    config = [p.name for p in before.iterdir() if p.suffix in {".yaml", ".json", ".sh"}]
    lines = [
        "[job.main]",
        f"launch = {json.dumps(launch)}",
        f"python = {json.dumps(sys.executable)}",
        f"editable = {json.dumps([*editable, *config])}",
        f"locked = {json.dumps(sorted(_others(before, editable)))}",
    ]
    (before / "infrarsi.toml").write_text("\n".join(lines) + "\n")


def _others(before: Path, editable: list[str]) -> set[str]:
    return {
        name
        for path in before.rglob("*.py")
        if (name := path.relative_to(before).as_posix()) not in editable
    }


def _write_launch(folder: Path, launch: str | None) -> None:
    script = folder / "launch.sh"
    if launch == PLAIN_LAUNCH:
        script.unlink(missing_ok=True)
    elif launch is not None:
        script.write_text(f"#!/usr/bin/env bash\n{launch}\n")
        script.chmod(0o755)
