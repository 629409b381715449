import os
from pathlib import Path

import pytest
from repositories import commit_files, git, make_repository, visible_state, write_files

from infrarsi.errors import UsageError
from infrarsi_server.workspace import snapshots
from infrarsi_server.workspace.root import find_repository, find_root, need_repository
from infrarsi_server.workspace.snapshots import (
    Snapshot,
    campaign_snapshot,
    snapshot_folder,
    snapshot_workspace,
)

FILES = {"train.py": "print(1)\n", "pkg/model.py": "x = 1\n", ".gitignore": "*.log\n"}


def snapshot(root: Path) -> Snapshot:
    return snapshot_workspace(root, need_repository(root))


def listing(taken: Snapshot) -> list[str]:
    return taken.git.text("ls-tree", "-r", "--name-only", taken.commit, "--full-tree").splitlines()


def test_a_snapshot_has_uncommitted_edits_new_files_and_no_ignored_ones(tmp_path: Path) -> None:
    root = make_repository(tmp_path / 'it\'s a "repo"', FILES)
    write_files(root, {"train.py": "print(2)\n", "new.py": "n\n", "x.log": "log\n"})
    (root / "pkg/model.py").unlink()
    taken = snapshot(root)
    assert listing(taken) == [".gitignore", "new.py", "train.py"]
    assert taken.text("train.py") == "print(2)\n"
    assert taken.text("pkg/model.py") is None


def test_a_snapshot_touches_nothing_the_user_sees(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    write_files(root, {"train.py": "print(2)\n", "staged.py": "s\n", "new.py": "n\n"})
    git(root, "add", "staged.py")
    before = visible_state(root)
    taken = snapshot(root)
    taken.bundle()
    taken.keep_for("20260101-abc")
    assert visible_state(root) == before


def test_the_same_content_gives_the_same_snapshot(tmp_path: Path) -> None:
    one = snapshot(make_repository(tmp_path / "one", FILES))
    two = snapshot(make_repository(tmp_path / "two", FILES))
    assert one.commit == two.commit


def test_an_edit_of_the_same_size_in_the_same_second_is_seen(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    stamp = (root / "train.py").stat().st_mtime_ns
    (root / "train.py").write_text("print(7)\n")
    os.utime(root / "train.py", ns=(stamp, stamp))
    assert snapshot(root).text("train.py") == "print(7)\n"


def test_a_workspace_in_a_subfolder_is_its_own_tree(tmp_path: Path) -> None:
    make_repository(tmp_path, {"jobs/a/train.py": "a\n", "jobs/a/infrarsi.toml": "", "b.py": "b\n"})
    root = find_root(tmp_path / "jobs" / "a")
    assert root == tmp_path / "jobs" / "a"
    assert listing(snapshot(root)) == ["infrarsi.toml", "train.py"]


def test_submodules_are_in_a_snapshot_as_their_content(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"deep.py": "d\n"})
    library = make_repository(tmp_path / "library", {"lib.py": "l\n"})
    git(library, "submodule", "--quiet", "add", str(inner), "deep")
    commit_files(library, {}, "Add deep")
    root = make_repository(tmp_path / "repo" / "sub", FILES)
    git(root, "submodule", "--quiet", "add", str(library), "lib")
    git(root, "submodule", "--quiet", "update", "--init", "--recursive")
    write_files(root, {"lib/lib.py": "edited\n"})
    taken = snapshot(root)
    assert {"lib/lib.py", "lib/deep/deep.py"} <= set(listing(taken))
    assert taken.text("lib/lib.py") == "edited\n"


def test_an_embedded_repository_below_a_subfolder_workspace_keeps_its_path(tmp_path: Path) -> None:
    make_repository(tmp_path, {"job/train.py": "t\n", "job/infrarsi.toml": ""})
    make_repository(tmp_path / "job" / "vendored", {"v.py": "v\n"})
    assert snapshot(tmp_path / "job").text("vendored/v.py") == "v\n"


def test_a_bundle_carries_the_snapshot_to_another_repository(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", FILES)
    taken = snapshot(root)
    git(tmp_path, "init", "--quiet", "--bare", "other")
    (tmp_path / "snapshot.bundle").write_bytes(taken.bundle())
    git(tmp_path / "other", "fetch", "--quiet", "../snapshot.bundle", "refs/infrarsi/*:refs/got/*")
    assert git(tmp_path / "other", "show", f"{taken.commit}:pkg/model.py") == "x = 1"


def test_a_plain_folder_is_kept_in_a_store_of_ours(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "plain", FILES)
    taken = snapshot_folder(folder, tmp_path / "state" / "store")
    assert listing(taken) == [".gitignore", "pkg/model.py", "train.py"]
    assert not (folder / ".git").exists()
    assert taken.bundle().startswith(b"# v")


def test_a_folder_snapshot_ignores_the_repository_around_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {".gitignore": "build/\n", "a.py": "a\n"})
    write_files(root, {"build/case/train.py": "t\n"})
    before = visible_state(root)
    taken = snapshot_folder(root / "build" / "case", tmp_path / "store")
    assert listing(taken) == ["train.py"]
    assert visible_state(root) == before


def test_a_campaign_remembers_its_source(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    repository = find_repository(root)
    assert repository is not None
    assert campaign_snapshot(repository, "c1") is None
    taken = snapshot(root)
    taken.keep_for("c1")
    kept = campaign_snapshot(repository, "c1")
    assert kept is not None
    assert kept.commit == taken.commit


def test_large_new_files_are_refused_with_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_repository(tmp_path, FILES)
    monkeypatch.setattr(snapshots, "NEW_FILES_LIMIT_BYTES", 100)
    write_files(root, {"data.bin": "0" * 200})
    with pytest.raises(UsageError, match=r"data\.bin.*gitignore"):
        snapshot(root)


def test_a_folder_outside_git_and_a_repository_without_commit_are_told_apart(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="not in a git repository"):
        need_repository(tmp_path)
    git(tmp_path, "init", "--quiet")
    with pytest.raises(UsageError, match="has no commit yet"):
        need_repository(tmp_path)
