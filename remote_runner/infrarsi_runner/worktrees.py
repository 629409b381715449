"""Trees of commits for a campaign: one shared checkout a commit, one private tree a candidate.

Jobs never run in these: every run gets a copy (see `run_folder`), so they stay as they are made.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from infrarsi.edits import Edit, apply_edits
from infrarsi.errors import EditConflict
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.git_store import GitStore

_TEXT_LIMIT_BYTES = 4 << 20


class Trees:
    """The trees of one campaign, below `root`."""

    def __init__(self, store: GitStore, root: Path) -> None:
        """Bind both; trees of a daemon that was killed are made anew."""
        self._store = store
        self._root = root
        remove_folder(root)
        store.forget_gone_worktrees()

    def tree(self, commit: str) -> Path:
        """The checkout of a commit, made once. Read it; do not write in it."""
        path = self._root / "commits" / commit
        if not path.exists():
            self._store.check_out(commit, path)
        return path

    def candidate(self, commit: str, edits: tuple[Edit, ...], name: str) -> Path:
        """A tree of its own with the edits applied; one of the same name is replaced.

        Raises:
            EditConflict: an edit does not fit, or its path leaves the tree or goes over a link.
        """
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "candidate"
        path = self._root / "candidates" / slug
        self.discard(path)
        self._store.check_out(commit, path)
        try:
            _apply(path, edits)
        except EditConflict:
            self.discard(path)
            raise
        return path

    def discard(self, path: Path) -> None:
        """Remove a candidate's tree."""
        remove_folder(path)
        self._store.forget_gone_worktrees()

    def sources(self, path: Path) -> "TreeSources":
        """The texts of a tree."""
        return TreeSources(path)


class TreeSources:
    """`infrarsi.reading.sources.Sources` over a folder; links are not followed."""

    def __init__(self, root: Path) -> None:
        """Keep the root."""
        self._root = root

    def text(self, path: str) -> str | None:
        """The file's text, or None where there is no such text file of a readable size."""
        file = _inside(self._root, path)
        if file is None or not file.is_file() or file.stat().st_size > _TEXT_LIMIT_BYTES:
            return None
        try:
            return file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def paths(self) -> Iterable[str]:
        """All regular files, sorted."""
        found: list[str] = []
        for folder, names, files in os.walk(self._root):
            names[:] = [name for name in names if name not in (".git", "__pycache__")]
            here = Path(folder)
            found += [
                (here / name).relative_to(self._root).as_posix()
                for name in files
                if name != ".git" and not (here / name).is_symlink()
            ]
        return sorted(found)


def _apply(root: Path, edits: tuple[Edit, ...]) -> None:
    """All edits of all files, or EditConflict before the first file is written."""
    written: dict[Path, str] = {}
    for name in dict.fromkeys(edit.file for edit in edits):
        file = _inside(root, name)
        if file is None:
            raise EditConflict(f"An edit names {name!r}, which is not inside the tree.", "")
        written[file] = apply_edits(_text(file), (e for e in edits if e.file == name))
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise EditConflict(f"{file.name} is not a text that can be edited.", "") from error


def _inside(root: Path, name: str) -> Path | None:
    """The path of that name if it is below the root, not git's own, and passes over no link."""
    parts = PurePosixPath(name).parts
    forbidden = not parts or name.startswith("/") or "\0" in name
    if forbidden or any(part in ("..", ".git") for part in parts):
        return None
    path = root
    for part in parts:
        path = path / part
        if path.is_symlink():
            return None
    return path
