"""Snapshots: the folder as the user sees it, as one parentless commit.

Uncommitted edits and new files that are not ignored are in it; submodules are in it as their
content. It is made through a temporary index and kept alive under `refs/infrarsi/`: the user's
index, HEAD, branches and working tree are never touched. The same content gives the same id.
Large files that are neither tracked nor ignored are refused rather than copied.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import UsageError
from infrarsi.units import format_bytes
from infrarsi_server.workspace.git import Git
from infrarsi_server.workspace.root import Repository

REFS = "refs/infrarsi"
NEW_FILES_LIMIT_BYTES = 512 << 20
_GITLINK = "160000"


@dataclass(frozen=True)
class Snapshot:
    """A commit and the repository that holds it."""

    commit: str
    git: Git

    def text(self, path: str) -> str | None:
        """A file's text as it was, or None where there is no such text file."""
        raw = self.git.show(self.commit, path)
        return None if raw is None else _decode(raw)

    def bundle(self) -> bytes:
        """The commit with everything it needs, as a git bundle."""
        ref = f"{REFS}/snapshots/{self.commit}"
        self.git.run("update-ref", ref, self.commit)
        return self.git.run("bundle", "create", "--quiet", "-", ref).stdout

    def keep_for(self, campaign: str) -> None:
        """Remember it as the source of a campaign."""
        self.git.run("update-ref", f"{REFS}/campaigns/{campaign}", self.commit)


def snapshot_workspace(root: Path, repository: Repository) -> Snapshot:
    """The workspace of a repository, uncommitted edits included.

    Raises:
        UsageError: new files are too large, or git cannot read the folder.
    """
    git = Git(root)
    _refuse_large(root, git.names("ls-files", "-z", "-o", "--exclude-standard", "."))
    with _temporary_index(Path(git.text("rev-parse", "--absolute-git-dir")) / "index") as index:
        return _take(git.with_index(index), repository.prefix, Git(root))


def snapshot_folder(folder: Path, store: Path) -> Snapshot:
    """Any folder, in a repository or not, kept in a bare repository of ours at `store`."""
    if not (store / "HEAD").exists():
        store.mkdir(parents=True, exist_ok=True)
        Git(store).run("init", "--quiet", "--bare", ".")
    git = Git(folder.resolve(), git_dir=store.resolve())
    with _temporary_index(None) as index:
        indexed = git.with_index(index)
        _refuse_large(folder, indexed.names("ls-files", "-z", "-o", "--exclude-standard", "."))
        return _take(indexed, "", git)


def campaign_snapshot(repository: Repository, campaign: str) -> Snapshot | None:
    """The snapshot a campaign was started from, if this clone remembers it."""
    git = repository.git()
    ref = f"{REFS}/campaigns/{campaign}"
    if not git.succeeds("rev-parse", "--verify", "--quiet", ref):
        return None
    return Snapshot(git.text("rev-parse", ref), git)


def _take(indexed: Git, prefix: str, git: Git) -> Snapshot:
    indexed.run("add", "-A", "--", ".")
    _inline_submodules(indexed)
    options = [f"--prefix={prefix}"] if prefix and _has_entries(indexed) else []
    tree = indexed.text("write-tree", *options)
    return Snapshot(git.commit_tree(tree, "Snapshot\n"), git)


def _has_entries(indexed: Git) -> bool:
    if indexed.names("ls-files", "-z", "--cached", "."):
        return True
    raise UsageError(f"{indexed.folder} has no files.", "Name the folder of a training job.")


@contextmanager
def _temporary_index(original: Path | None) -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="infrarsi-index-") as folder:
        index = Path(folder, "index")
        if original is not None and original.exists():
            shutil.copy2(original, index)
        yield index


def _inline_submodules(indexed: Git) -> None:
    links = [
        entry.split("\t", 1)[1]
        for entry in indexed.names("ls-files", "-z", "--stage", ".")
        if entry.startswith(_GITLINK)
    ]
    for link in links:
        indexed.run("update-index", "--force-remove", "--", link)
        lines = [_entry(indexed, path) for path in _submodule_files(indexed.folder, link)]
        indexed.run("update-index", "-z", "--index-info", stdin=b"".join(lines))


def _submodule_files(folder: Path, link: str) -> Iterator[str]:
    if not (folder / link / ".git").exists():
        return
    names = Git(folder / link).names("ls-files", "-z", "-co", "--exclude-standard", "--deduplicate")
    for name in names:
        path = f"{link}/{name.rstrip('/')}"
        if (folder / path).is_dir() and not (folder / path).is_symlink():
            yield from _submodule_files(folder, path)
        elif os.path.lexists(folder / path):
            yield path


def _entry(indexed: Git, path: str) -> bytes:
    full = indexed.folder / path
    mode = full.lstat().st_mode
    if stat.S_ISLNK(mode):
        kind, content = "120000", os.fsencode(full.readlink())
    else:
        kind = "100755" if mode & stat.S_IXUSR else "100644"
        content = full.read_bytes()
    blob = indexed.text("hash-object", "-w", "--stdin", stdin=content)
    prefix = indexed.text("rev-parse", "--show-prefix")
    return f"{kind} {blob}\t{prefix}{path}\0".encode(errors="surrogateescape")


def _refuse_large(root: Path, new_files: list[str]) -> None:
    sizes = {name: (root / name).lstat().st_size for name in new_files if (root / name).is_file()}
    if sum(sizes.values()) <= NEW_FILES_LIMIT_BYTES:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    raise UsageError(
        f"The new files are too large for a snapshot: {largest} alone has "
        f"{format_bytes(sizes[largest])}.",
        "Ignore them in .gitignore (the job reads them where they are) or commit them.",
    )


def _decode(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
