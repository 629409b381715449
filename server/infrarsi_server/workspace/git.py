"""Plain git by argv. The only place that starts it.

Hooks and the file-system monitor are switched off and the caller's own `GIT_DIR` and its kin are
dropped, so that a call behaves the same from a hook, an editor or a terminal. What it leaves out
on purpose: anything that writes the user's index, HEAD or working tree.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infrarsi.errors import RunnerError, UsageError

_QUIET = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "advice.addEmbeddedRepo=false",
    "-c",
    "core.safecrlf=false",
)
_DROPPED = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
}
_IDENTITY = "InfraRSI"
_EMAIL = "infrarsi@localhost"
_EPOCH = "2000-01-01T00:00:00+00:00"


@dataclass(frozen=True)
class Git:
    """git in one folder. With `git_dir` the folder is only the work tree of that repository."""

    folder: Path
    git_dir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def run(
        self, *args: str, stdin: bytes = b"", check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end.

        Raises:
            UsageError: git is missing, or it failed and `check` is set.
            RunnerError: the disk is full.
        """
        try:
            done = subprocess.run(
                ["git", *_QUIET, *args],
                cwd=self.folder,
                env=self._environment(),
                input=stdin,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise UsageError("git was not found.", "Install git and try again.") from error
        if b"No space left on device" in done.stderr:
            raise RunnerError(f"The disk of {self.folder} is full.", "Make room on it.")
        if check and done.returncode != 0:
            raise UsageError(f"git {args[0]} failed: {_first_line(done.stderr)}.", "Mend that.")
        return done

    def text(self, *args: str, stdin: bytes = b"") -> str:
        """Standard output, stripped."""
        return self.run(*args, stdin=stdin).stdout.decode(errors="replace").strip()

    def names(self, *args: str) -> list[str]:
        """Standard output of a `-z` listing, as names."""
        raw = self.run(*args).stdout
        return [name.decode(errors="surrogateescape") for name in raw.split(b"\0") if name]

    def succeeds(self, *args: str) -> bool:
        """Whether it exits 0."""
        return self.run(*args, check=False).returncode == 0

    def with_index(self, index: Path) -> "Git":
        """The same repository seen through another index file."""
        return Git(self.folder, self.git_dir, {**self.env, "GIT_INDEX_FILE": str(index)})

    def commit_tree(self, tree: str, message: str, parent: str | None = None) -> str:
        """A commit of that tree, by the user where git knows one.

        Without a parent author and date are fixed: the same tree gives the same id.
        """
        parents = () if parent is None else ("-p", parent)
        known = parent is not None and self.succeeds("var", "GIT_COMMITTER_IDENT")
        fields = {} if known else {"NAME": _IDENTITY, "EMAIL": _EMAIL}
        if parent is None:
            fields["DATE"] = _EPOCH
        env = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in fields.items()}
        git = Git(self.folder, self.git_dir, {**self.env, **env})
        return git.text("commit-tree", tree, *parents, stdin=message.encode())

    def show(self, commit: str, path: str) -> bytes | None:
        """The content of a file in a commit, or None where it has none."""
        done = self.run("cat-file", "blob", f"{commit}:{path}", check=False)
        return done.stdout if done.returncode == 0 else None

    def _environment(self) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if k not in _DROPPED}
        env |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        if self.git_dir is not None:
            env |= {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.folder)}
        return env | dict(self.env)


def top_level(folder: Path) -> Path | None:
    """The top of the repository the folder is in, or None."""
    done = Git(folder).run("rev-parse", "--show-toplevel", check=False)
    if done.returncode == 0:
        return Path(done.stdout.decode().rstrip("\n")).resolve()
    if b"dubious ownership" in done.stderr:
        raise UsageError(
            f"git does not trust {folder}: it belongs to another user.",
            "Run: git config --global --add safe.directory <that folder>",
        )
    return None


def _first_line(stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ").removeprefix("error: ").rstrip(".") if lines else "?"
