"""Real folders and git repositories for tests."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def git(folder: Path, *args: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    always = ("-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *identity, *always, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repository(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    return commit_files(folder, files, "Baseline")


def commit_files(folder: Path, files: Mapping[str, str], message: str) -> Path:
    write_files(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", message)
    return folder


def visible_state(folder: Path) -> dict[str, str]:
    """Everything a user can see of a repository: HEAD, refs, status, index and files."""
    index = Path(git(folder, "rev-parse", "--absolute-git-dir"), "index")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts)
    return {
        "head": git(folder, "rev-parse", "HEAD"),
        "branch": git(folder, "symbolic-ref", "HEAD"),
        "refs": git(folder, "for-each-ref", "refs/heads", "refs/tags"),
        "index": index.read_bytes().hex(),
        "status": git(folder, "--no-optional-locks", "status", "--porcelain"),
        "files": "".join(f"{p}:{p.read_bytes().hex()}" for p in files),
    }
