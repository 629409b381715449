"""Which files a folder holds, asked of git again only where something may have come or gone.

A listing stands while every folder that holds a listed file, each folder right in one of these,
git's index and the ignore files are as they were. Leaves out what the files say.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from infrarsi_server.workspace.git import Git, top_level

Mark = tuple[str, int, int]
_SKIPPED_FOLDERS = {".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache"}
_MAX_ROOTS = 32


def list_files(root: Path) -> Iterator[str]:
    """The files of a folder as git sees them; all, where git knows none of them."""
    listed = list(_tracked_and_new(root)) if top_level(root) is not None else []
    yield from listed or _walk(root)


@dataclass(frozen=True)
class _Listing:
    paths: tuple[str, ...]
    watched: tuple[str, ...]
    marks: tuple[Mark, ...]


class Listings:
    """The listings of some roots, kept from one look to the next."""

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[Path, _Listing] = {}

    def paths(self, root: Path) -> tuple[str, ...]:
        """All files of a root, sorted."""
        known = self._known.get(root)
        if known is None or known.marks != tuple(_marks(known.watched)):
            known = self._list(root)
        return known.paths

    def forget(self) -> None:
        """Look again: somebody says that files came or went."""
        self._known.clear()

    def _list(self, root: Path) -> _Listing:
        """List and mark; a listing during which something moved, or without git, is not kept."""
        paths = tuple(sorted(list_files(root)))
        if top_level(root) is None:
            return _Listing(paths, (), ())
        watched = tuple(_watched(root, paths))
        marks = tuple(_marks(watched))
        listing = _Listing(paths, watched, marks)
        if len(self._known) >= _MAX_ROOTS:
            self._known.clear()
        if paths == tuple(sorted(list_files(root))):
            self._known[root] = listing
        return listing


def _watched(root: Path, paths: Iterable[str]) -> list[str]:
    """The folders and files that tell whether a listing still stands."""
    folders = {root}
    ignoring: set[str] = set()
    for path in paths:
        at = root / path
        if at.name == ".gitignore":
            ignoring.add(str(at))
        for folder in at.parents:
            if folder in folders:
                break
            folders.add(folder)
    inner = {entry for folder in folders for entry in _folders_in(folder)}
    return sorted({*map(str, folders), *inner, *ignoring, *_of_git(root)})


def _folders_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for e in entries if e.is_dir() and e.name not in _SKIPPED_FOLDERS]
    except OSError:
        return []


def _of_git(root: Path) -> list[str]:
    named = ("rev-parse", "--git-path", "index", "--git-path", "info/exclude")
    return [str(root / line) for line in Git(root).text(*named).splitlines()]


def _marks(watched: Iterable[str]) -> Iterator[Mark]:
    for path in watched:
        try:
            found = Path(path).stat()
            yield path, found.st_mtime_ns, found.st_ino
        except OSError:
            yield path, 0, 0


def _tracked_and_new(folder: Path) -> Iterator[str]:
    names = Git(folder).names(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "."
    )
    for name in names:
        path = folder / name
        if path.is_file():
            yield name
        elif (path / ".git").exists():
            yield from (f"{name.rstrip('/')}/{inner}" for inner in _tracked_and_new(path))


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED_FOLDERS)
        yield from (Path(folder, name).relative_to(root).as_posix() for name in files)
