"""The folder of one run: a private copy of its tree, scratch space, and what is kept of it.

runs/<campaign>/<number>-<label>/
    tree/ scratch/ tmp/   the job's own; removed when it has ended
    evidence/             the job's own; kept until the result is discarded
    probe.json log etc/   the runner's
"""

import filecmp
import os
import re
from collections.abc import Iterator
from pathlib import Path

from infrarsi_runner.folders import copy_folder, remove_folder

_SCRATCH = ("home", "cache", "inductor", "triton")
_NAMES = {
    "passwd": "root:x:0:0::/:/bin/sh\nrunner:x:{uid}:{gid}::/tmp:/bin/sh\n",
    "group": "root:x:0:\nrunner:x:{gid}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


class RunFolder:
    """Paths of one run; `make` is the only way to a new one."""

    def __init__(self, path: Path) -> None:
        """Name the parts below `path`."""
        self.path = path
        self.tree = path / "tree"
        self.scratch = path / "scratch"
        self.tmp = path / "tmp"
        self.evidence = path / "evidence"
        self.etc = path / "etc"
        self.probe_config = path / "probe.json"
        self.log = path / "log"

    @classmethod
    def make(cls, runs: Path, label: str, tree: Path) -> "RunFolder":
        """A fresh folder with a copy of `tree`; never one that was used before."""
        runs.mkdir(parents=True, exist_ok=True)
        numbers = [int(m[0]) for p in runs.iterdir() if (m := re.match(r"\d+", p.name))]
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")[:40] or "run"
        folder = cls(runs / f"{max(numbers, default=0) + 1:04d}-{slug}")
        folder.path.mkdir(mode=0o700)
        for name in _SCRATCH:
            (folder.scratch / name).mkdir(parents=True)
        for path in (folder.tmp, folder.evidence, folder.etc):
            path.mkdir()
        for name, text in _NAMES.items():
            (folder.etc / name).write_text(text.format(uid=os.getuid(), gid=os.getgid()))
        copy_folder(tree, folder.tree)
        return folder

    def changed_since(self, tree: Path) -> tuple[str, ...]:
        """Files of `tree` that are not as they were in this run's copy, as posix paths."""
        return tuple(n for n in sorted(_files(tree)) if not _same(tree / n, self.tree / n))

    def drop_workings(self) -> None:
        """Remove what only the running job needed."""
        for path in (self.tree, self.scratch, self.tmp):
            remove_folder(path)


def _files(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def _same(before: Path, after: Path) -> bool:
    """Whether both are links to the same target or regular files of the same content."""
    try:
        if before.is_symlink() or after.is_symlink():
            return before.readlink() == after.readlink()
        return after.is_file() and filecmp.cmp(before, after, shallow=False)
    except OSError:
        return False
