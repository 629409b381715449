from pathlib import Path

import pytest
from repositories import commit_files, git, make_repository, visible_state, write_files

from infrarsi.errors import EditConflict
from infrarsi_server.workspace.commits import (
    Change,
    branch_tip,
    changes_back,
    commit_changes,
    is_ancestor,
    is_checked_out,
)
from infrarsi_server.workspace.root import Repository

BEFORE = "".join(f"line {n}\n" for n in range(20))
AFTER = BEFORE.replace("line 10\n", "faster 10\n")
MESSAGE = "Speed up\n\nInfrarsi-Campaign: c1\n"


def repository(folder: Path) -> Repository:
    make_repository(folder, {"train.py": BEFORE, "other.py": "o\n"})
    return Repository(top=folder, prefix="")


def apply(at: Repository, branch: str = "infrarsi/main/c1") -> str:
    head = git(at.top, "rev-parse", "HEAD")
    changes = {"train.py": Change(BEFORE, AFTER)}
    return commit_changes(at, branch, head, changes, MESSAGE).commit


def test_a_change_is_committed_beside_the_users_work(tmp_path: Path) -> None:
    at = repository(tmp_path)
    write_files(tmp_path, {"train.py": "half-typed(\n", "new.py": ""})
    git(tmp_path, "add", "new.py")
    before = visible_state(tmp_path)
    commit = apply(at)
    after = visible_state(tmp_path)
    assert {k: v for k, v in after.items() if k != "refs"} == {
        k: v for k, v in before.items() if k != "refs"
    }
    assert git(tmp_path, "show", f"{commit}:train.py") == AFTER.strip()
    assert git(tmp_path, "diff", "--name-only", "HEAD", commit) == "train.py"
    assert branch_tip(at, "infrarsi/main/c1") == commit


def test_a_file_that_moved_on_elsewhere_is_merged_and_said(tmp_path: Path) -> None:
    at = repository(tmp_path)
    commit_files(tmp_path, {"train.py": "# new first line\n" + BEFORE}, "Comment")
    head = git(tmp_path, "rev-parse", "HEAD")
    made = commit_changes(at, "b", head, {"train.py": Change(BEFORE, AFTER)}, MESSAGE)
    assert made.merged == ("train.py",)
    assert git(tmp_path, "show", "b:train.py") == ("# new first line\n" + AFTER).strip()


def test_a_file_that_moved_on_at_the_same_lines_is_a_conflict(tmp_path: Path) -> None:
    at = repository(tmp_path)
    commit_files(tmp_path, {"train.py": BEFORE.replace("line 10\n", "mine\n")}, "Mine")
    with pytest.raises(EditConflict, match=r"train\.py has changed"):
        apply(at)
    assert branch_tip(at, "infrarsi/main/c1") is None


def test_a_deleted_file_is_a_conflict(tmp_path: Path) -> None:
    at = repository(tmp_path)
    git(tmp_path, "rm", "--quiet", "train.py")
    git(tmp_path, "commit", "--quiet", "-m", "Gone")
    with pytest.raises(EditConflict, match=r"train\.py has changed"):
        apply(at)


def test_a_change_that_is_already_there_is_refused(tmp_path: Path) -> None:
    at = repository(tmp_path)
    commit_files(tmp_path, {"train.py": AFTER}, "By hand")
    with pytest.raises(EditConflict, match="already there"):
        apply(at)


def test_taking_a_commit_back_restores_the_tree(tmp_path: Path) -> None:
    at = repository(tmp_path)
    commit = apply(at)
    back = commit_changes(at, "infrarsi/main/c1", commit, changes_back(at, commit), "Undo\n")
    assert git(tmp_path, "diff", "HEAD", back.commit) == ""
    assert is_ancestor(at, commit, "infrarsi/main/c1")


def test_an_executable_file_stays_executable(tmp_path: Path) -> None:
    at = repository(tmp_path)
    (tmp_path / "train.py").chmod(0o755)
    git(tmp_path, "commit", "--quiet", "-am", "Executable")
    assert git(tmp_path, "ls-tree", apply(at), "train.py").startswith("100755")


def test_a_branch_someone_stands_on_is_known(tmp_path: Path) -> None:
    at = repository(tmp_path)
    apply(at)
    assert not is_checked_out(at, "infrarsi/main/c1")
    git(tmp_path, "worktree", "add", "--quiet", str(tmp_path.parent / "tree"), "infrarsi/main/c1")
    assert is_checked_out(at, "infrarsi/main/c1")


def test_a_repository_without_identity_can_be_committed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    at = repository(tmp_path)
    git(tmp_path, "config", "user.useConfigOnly", "true")
    author = git(tmp_path, "log", "-1", "--format=%an", apply(at))
    assert author == "InfraRSI"
