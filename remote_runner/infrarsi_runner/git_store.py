"""The runner's own bare git store: bundles in, worktrees out, nothing of the user's settings.

Every call is argv with an environment of its own: no system or user configuration, no hooks, no
prompts, no transport but a local bundle. Git is never run inside a tree that a job has written.
"""

import re
import subprocess
from pathlib import Path

from infrarsi.errors import RunnerError, UsageError

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_HEADS = 256
_WITHIN_S = 600.0
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_OPTIONAL_LOCKS": "0",
}
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.autocrlf": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "fetch.fsckObjects": "true",
    "fetch.fsck.badTimezone": "ignore",
    "fetch.fsck.missingSpaceBeforeDate": "ignore",
    "fetch.fsck.zeroPaddedFilemode": "ignore",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
}


class GitStore:
    """A bare repository that holds every commit the runner was sent."""

    def __init__(self, path: Path) -> None:
        """Open the store at `path`, made if it is not there."""
        self.path = path
        if not (path / "HEAD").exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._run("init", "--bare", "--quiet", "--template=", str(path))

    def add_bundle(self, bundle: Path) -> tuple[str, ...]:
        """Take in all heads of a bundle file; the commits that are now held.

        Raises:
            UsageError: it is no bundle, lacks what it builds on, or its objects are malformed.
        """
        heads = self._heads(bundle)
        self._git("bundle", "verify", "--quiet", str(bundle))
        refs = [f"+{name}:refs/kept/{commit}" for commit, name in heads]
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        self._git("fetch", *options, str(bundle), *refs)
        return tuple(dict.fromkeys(commit for commit, _ in heads))

    def has(self, commit: str) -> bool:
        """Whether that full commit id is held."""
        if not _COMMIT.fullmatch(commit):
            return False
        found = self._try("cat-file", "-e", f"{commit}^{{commit}}")
        return found.returncode == 0

    def check_out(self, commit: str, target: Path) -> None:
        """Make a worktree of the commit at `target`, submodules included where they are held."""
        if not self.has(commit):
            raise UsageError(f"The runner does not hold commit {commit[:64]!r}.", "Send it first.")
        target.parent.mkdir(parents=True, exist_ok=True)
        self._git("worktree", "add", "--quiet", "--force", "--detach", str(target), commit)
        self._check_out_submodules(commit, target)

    def forget_gone_worktrees(self) -> None:
        """Forget worktrees whose folders are no longer there."""
        self._git("worktree", "prune")

    def _check_out_submodules(self, commit: str, target: Path) -> None:
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", commit)
        for entry in listed.split("\0"):
            mode, _, rest = entry.partition(" ")
            if mode != "160000":
                continue
            inner, _, name = rest.removeprefix("commit ").partition("\t")
            folder = target / name
            if self.has(inner) and not folder.is_symlink():
                self._check_out_plain(inner, folder)
                self._check_out_submodules(inner, folder)

    def _check_out_plain(self, commit: str, folder: Path) -> None:
        """The commit's files without a worktree's link back: a submodule's content."""
        folder.mkdir(parents=True, exist_ok=True)
        index = self.path / f"index-{commit}"
        environment = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
        try:
            self._git("read-tree", commit, environment=environment)
            self._git("checkout-index", "--all", "--force", "--quiet", environment=environment)
        finally:
            index.unlink(missing_ok=True)

    def _heads(self, bundle: Path) -> list[tuple[str, str]]:
        lines = self._git("bundle", "list-heads", str(bundle)).splitlines()
        heads = [(commit, name) for commit, _, name in (line.partition(" ") for line in lines)]
        if not heads or len(heads) > _MAX_HEADS:
            raise UsageError(f"The bundle has {len(heads)} heads.", "Send between 1 and 256.")
        if not all(_COMMIT.fullmatch(commit) for commit, _ in heads):
            raise UsageError("The bundle's heads are malformed.", "Make the bundle again.")
        return heads

    def _git(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        done = self._try(*arguments, environment=environment)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = next((s for s in said if s.startswith(("fatal:", "error:"))), "no reason")
            if "No space left" in reason or any("No space left" in line for line in said):
                raise RunnerError(
                    f"The disk that holds {self.path} is full.", "Free some space there."
                )
            raise UsageError(f"git {arguments[0]} failed: {reason[:300]}.", "Send it again.")
        return done.stdout.decode(errors="surrogateescape")

    def _try(
        self, *arguments: str, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return self._run("--git-dir", str(self.path), *arguments, environment=environment)

    def _run(
        self, *arguments: str, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        settings = [word for k, v in _SETTINGS.items() for word in ("-c", f"{k}={v}")]
        try:
            return subprocess.run(
                ["git", *settings, *arguments],
                env={**_ENVIRONMENT, **(environment or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_WITHIN_S,
                check=False,
            )
        except FileNotFoundError as error:
            raise RunnerError("git is not installed here.", "Install git.") from error
        except subprocess.TimeoutExpired as error:
            raise RunnerError(f"git {arguments[0]} did not end.", "Try again.") from error
