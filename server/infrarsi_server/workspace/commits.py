"""Commits made beside the user's work: through a temporary index, onto a branch of their own.

A change is a pair of texts of each file. Where the parent's text is no longer the first of them,
the two sides are merged line by line, and what does not merge is refused. The user's index, HEAD
and working tree are never touched; a branch that is checked out anywhere is never moved.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import EditConflict
from infrarsi_server.workspace.git import Git
from infrarsi_server.workspace.root import Repository

_NEW_FILE_MODE = "100644"


@dataclass(frozen=True)
class Change:
    """A file's text before and after; None where the file does not exist on that side."""

    before: str | None
    after: str | None


@dataclass(frozen=True)
class Committed:
    """A new commit. `merged` are files whose text had moved on and merged cleanly."""

    commit: str
    branch: str
    merged: tuple[str, ...]


def commit_changes(
    repository: Repository, branch: str, parent: str, changes: Mapping[str, Change], message: str
) -> Committed:
    """Commit the changes on top of `parent` and let `branch` point there.

    Args:
        repository: where; `changes` are named from its top.
        branch: a short branch name, made or moved forward.
        parent: a commit id.
        changes: by path.
        message: the whole message, trailers included.

    Raises:
        EditConflict: a file moved on and does not merge, or nothing would change.
    """
    git = repository.git()
    with tempfile.TemporaryDirectory(prefix="infrarsi-index-") as folder:
        indexed = git.with_index(Path(folder, "index"))
        indexed.run("read-tree", parent)
        merged = tuple(p for p, c in sorted(changes.items()) if _stage(indexed, parent, p, c))
        tree = indexed.text("write-tree")
    if tree == git.text("rev-parse", f"{parent}^{{tree}}"):
        raise EditConflict("The commit would change nothing: it is already there.", "Leave it.")
    old = branch_tip(repository, branch)
    commit = git.commit_tree(tree, message, parent)
    git.run("update-ref", "-m", "infrarsi", f"refs/heads/{branch}", commit, old or "0" * 40)
    return Committed(commit, branch, merged)


def branch_tip(repository: Repository, branch: str) -> str | None:
    """The commit a branch points at, if there is such a branch."""
    git, ref = repository.git(), f"refs/heads/{branch}"
    if not git.succeeds("show-ref", "--verify", "--quiet", ref):
        return None
    return git.text("rev-parse", ref)


def is_checked_out(repository: Repository, branch: str) -> bool:
    """Whether any working tree of the repository stands on the branch."""
    listing = repository.git().text("worktree", "list", "--porcelain")
    return f"branch refs/heads/{branch}" in listing.splitlines()


def is_ancestor(repository: Repository, commit: str, of: str) -> bool:
    """Whether `commit` is in the history of `of`."""
    return repository.git().succeeds("merge-base", "--is-ancestor", commit, of)


def changes_back(repository: Repository, commit: str) -> dict[str, Change]:
    """What takes a commit back: its changed files with both texts, after first."""
    git = repository.git()
    names = git.names("diff-tree", "-z", "-r", "--name-only", "--no-commit-id", commit)
    return {
        name: Change(_text(git, commit, name), _text(git, f"{commit}^", name)) for name in names
    }


def _stage(indexed: Git, parent: str, path: str, change: Change) -> bool:
    current = _text(indexed, parent, path)
    moved_on = current != change.before
    text = _merge(path, current, change) if moved_on else change.after
    if text is None:
        indexed.run("update-index", "--force-remove", "--", path)
        return moved_on
    listed = indexed.text("ls-files", "--stage", "--", f":(literal){path}")
    mode = listed.split(" ", 1)[0] if listed else _NEW_FILE_MODE
    blob = indexed.text("hash-object", "-w", "--stdin", stdin=text.encode())
    indexed.run("update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
    return moved_on


def _merge(path: str, current: str | None, change: Change) -> str:
    conflict = EditConflict(
        f"{path} has changed since this was measured, on the same lines.",
        "Lock and run again from the current state.",
    )
    if current is None or change.before is None or change.after is None:
        raise conflict
    with tempfile.TemporaryDirectory(prefix="infrarsi-merge-") as folder:
        sides = [Path(folder, name) for name in ("current", "before", "after")]
        for side, text in zip(sides, (current, change.before, change.after), strict=True):
            side.write_bytes(text.encode())
        done = Git(Path(folder)).run("merge-file", "-p", "-q", *map(str, sides), check=False)
    if done.returncode != 0:
        raise conflict
    return done.stdout.decode()


def _text(git: Git, commit: str, path: str) -> str | None:
    raw = git.show(commit, path)
    return None if raw is None else raw.decode()
