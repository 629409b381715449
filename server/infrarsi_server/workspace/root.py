"""Where the workspace begins, and which repository it is in."""

from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import UsageError
from infrarsi_server.workspace.git import Git, top_level

CONFIG_NAME = "infrarsi.toml"
LOCK_NAME = ".infrarsi/contract.lock.json"


@dataclass(frozen=True)
class Repository:
    """The git repository around a workspace. `prefix` is the workspace's path in it, or ""."""

    top: Path
    prefix: str

    def git(self) -> Git:
        """Run git at the top."""
        return Git(self.top)

    def path(self, file: str) -> str:
        """A workspace path as the repository names it."""
        return f"{self.prefix}{file}"


def find_root(start: Path) -> Path:
    """The folder of the nearest `infrarsi.toml` upwards, else git's top level, else `start`.

    Raises:
        UsageError: there is no such folder.
    """
    start = start.resolve()
    if not start.is_dir():
        raise UsageError(f"{start} is not a folder.", "Name an existing folder.")
    for folder in (start, *start.parents):
        if (folder / CONFIG_NAME).is_file():
            return folder
    return top_level(start) or start


def find_repository(root: Path) -> Repository | None:
    """The repository the workspace is in, if any."""
    top = top_level(root)
    if top is None:
        return None
    inside = root.resolve().relative_to(top).as_posix()
    return Repository(top=top, prefix="" if inside == "." else f"{inside}/")


def need_repository(root: Path) -> Repository:
    """The repository with at least one commit.

    Raises:
        UsageError: there is none, or it has no commit.
    """
    repository = find_repository(root)
    if repository is None:
        raise UsageError(
            f"{root} is not in a git repository.",
            "Run: git init && git add -A && git commit -m 'Baseline'",
        )
    if not repository.git().succeeds("rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
        raise UsageError(
            f"The git repository at {repository.top} has no commit yet.",
            "Run: git add -A && git commit -m 'Baseline'",
        )
    return repository
