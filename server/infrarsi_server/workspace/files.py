"""The workspace's text files as Sources: what git tracks and what is new and not ignored.

Binary files and files above the size limit are left out; they are no source.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from infrarsi.reading.sources import Sources
from infrarsi_server.workspace.listings import Listings, list_files
from infrarsi_server.workspace.root import Repository

SIZE_LIMIT_BYTES = 1 << 20


class FolderSources:
    """Texts under a folder, read when asked for and kept."""

    def __init__(
        self,
        root: Path,
        size_limit_bytes: int = SIZE_LIMIT_BYTES,
        listings: Listings | None = None,
    ) -> None:
        """List the files once; a new object sees later ones. `listings` are kept for long."""
        self.root = root.resolve()
        self._limit = size_limit_bytes
        listed = listings.paths(self.root) if listings else sorted(list_files(self.root))
        self._paths = tuple(listed)
        self._known = frozenset(self._paths)
        self._texts: dict[str, str | None] = {}

    def paths(self) -> Iterable[str]:
        """All files, sorted."""
        return self._paths

    def text(self, path: str) -> str | None:
        """The file's text as UTF-8, or None where it is no text file of this folder."""
        if path not in self._known:
            return None
        if path not in self._texts:
            self._texts[path] = _read_text(self.root / path, self.root, self._limit)
        return self._texts[path]


class CommitSources:
    """Texts of the workspace as a commit holds them; none where the commit is not there."""

    def __init__(self, repository: Repository, commit: str) -> None:
        """List the files once."""
        self._git, self._prefix, self._commit = repository.git(), repository.prefix, commit
        listing = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        done = self._git.run(*listing, "--", self._prefix or ".", check=False)
        names = (
            done.stdout.decode(errors="surrogateescape").split("\0") if not done.returncode else []
        )
        self._paths = tuple(sorted(name.removeprefix(self._prefix) for name in names if name))
        self._texts: dict[str, str | None] = {}

    def paths(self) -> tuple[str, ...]:
        """All files, sorted."""
        return self._paths

    def text(self, path: str) -> str | None:
        """The file's text in that commit, or None where it is no text file of it."""
        if path not in self._texts:
            raw = self._git.show(self._commit, f"{self._prefix}{path}")
            self._texts[path] = None if raw is None else _decode(raw)
        return self._texts[path]


class OverlaySources:
    """Open documents laid over other sources."""

    def __init__(self, base: Sources, documents: Mapping[str, str]) -> None:
        """`documents` are texts by path; they win over `base`."""
        self._base = base
        self._documents = dict(documents)

    def paths(self) -> Iterable[str]:
        """All files of both, sorted."""
        return sorted({*self._base.paths(), *self._documents})

    def text(self, path: str) -> str | None:
        """The open document's text, else the file's."""
        document = self._documents.get(path)
        return self._base.text(path) if document is None else document


def _read_text(path: Path, root: Path, limit: int) -> str | None:
    try:
        inside = path.resolve().is_relative_to(root)
        if not inside or path.stat().st_size > limit:
            return None
        return _decode(path.read_bytes())
    except OSError:
        return None


def _decode(raw: bytes) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
