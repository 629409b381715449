"""Commits in, trees out; hostile bundles and edits are refused."""

from pathlib import Path

import pytest
from repositories import commit_files, git, make_repository

from infrarsi.edits import Edit
from infrarsi.errors import EditConflict, UsageError
from infrarsi_runner.git_store import GitStore
from infrarsi_runner.worktrees import Trees

FILES = {"train.py": "lr = 1\n", "lib/model.py": "é = 2\r\n"}


def bundle(repository: Path, *revisions: str) -> Path:
    path = repository.parent / "all.bundle"
    git(repository, "bundle", "create", "--quiet", str(path), *(revisions or ("HEAD",)))
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "user", FILES)


@pytest.fixture
def store(tmp_path: Path) -> GitStore:
    return GitStore(tmp_path / "state" / "objects.git")


@pytest.fixture
def commit(repository: Path, store: GitStore) -> str:
    (commit,) = store.add_bundle(bundle(repository))
    return commit


@pytest.fixture
def trees(tmp_path: Path, store: GitStore) -> Trees:
    return Trees(store, tmp_path / "state" / "trees" / "one")


def test_a_commit_is_checked_out_as_it_was_sent(
    trees: Trees, repository: Path, commit: str
) -> None:
    assert commit == git(repository, "rev-parse", "HEAD")
    tree = trees.tree(commit)
    assert (tree / "lib/model.py").read_bytes() == FILES["lib/model.py"].encode()
    assert trees.tree(commit) == tree
    sources = trees.sources(tree)
    assert list(sources.paths()) == ["lib/model.py", "train.py"]
    assert sources.text("train.py") == "lr = 1\n"
    assert sources.text("missing.py") is None


def test_a_second_bundle_may_build_on_the_first(
    store: GitStore, repository: Path, commit: str, trees: Trees
) -> None:
    commit_files(repository, {"train.py": "lr = 2\n"}, "Faster")
    (second,) = store.add_bundle(bundle(repository, "HEAD", f"^{commit}"))
    assert (trees.tree(second) / "train.py").read_text() == "lr = 2\n"
    assert store.has(commit)


def test_a_bundle_that_lacks_its_base_is_refused(tmp_path: Path, repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    commit_files(repository, {"train.py": "lr = 2\n"}, "Faster")
    with pytest.raises(UsageError, match="git bundle failed"):
        GitStore(tmp_path / "new.git").add_bundle(bundle(repository, "HEAD", f"^{base}"))


def test_what_is_no_bundle_is_refused(store: GitStore, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"not a bundle")
    with pytest.raises(UsageError):
        store.add_bundle(tmp_path / "x")


def test_a_commit_that_was_never_sent_is_refused(store: GitStore, trees: Trees) -> None:
    for name in ("0" * 40, "HEAD", "--help", "../x"):
        assert not store.has(name)
        with pytest.raises(UsageError, match="does not hold"):
            trees.tree(name)


def test_a_candidate_has_its_edits_and_the_baseline_has_not(trees: Trees, commit: str) -> None:
    edits = (
        Edit(file="train.py", start=5, old="1", new="2"),
        Edit(file="lib/new.py", start=0, old="", new="fresh = True\n"),
    )
    path = trees.candidate(commit, edits, "trial 1/../x")
    assert (path / "train.py").read_text() == "lr = 2\n"
    assert (path / "lib/new.py").read_text() == "fresh = True\n"
    assert (trees.tree(commit) / "train.py").read_text() == "lr = 1\n"
    trees.discard(path)
    assert not path.exists()


def test_two_candidates_of_one_name_do_not_mix(trees: Trees, commit: str) -> None:
    first = trees.candidate(commit, (Edit(file="a.py", start=0, old="", new="x"),), "t")
    second = trees.candidate(commit, (), "t")
    assert first == second
    assert not (second / "a.py").exists()


def test_an_edit_that_does_not_fit_leaves_nothing_behind(
    trees: Trees, commit: str, tmp_path: Path
) -> None:
    with pytest.raises(EditConflict):
        trees.candidate(commit, (Edit(file="train.py", start=0, old="zz", new=""),), "t")
    assert list((tmp_path / "state/trees/one/candidates").iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../out.py", "/etc/out", "a/../../out", ".git/config", "link/out.py", "link.py", ""]
)
def test_an_edit_cannot_leave_the_tree(
    store: GitStore, trees: Trees, repository: Path, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim.py").write_text("")
    (repository / "link").symlink_to(outside)
    (repository / "link.py").symlink_to(outside / "victim.py")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Links")
    (commit,) = store.add_bundle(bundle(repository))
    with pytest.raises(EditConflict):
        trees.candidate(commit, (Edit(file=name, start=0, old="", new="x"),), "t")
    assert (outside / "victim.py").read_text() == ""
    assert [p.name for p in outside.iterdir()] == ["victim.py"]


def test_sources_do_not_follow_links(store: GitStore, trees: Trees, repository: Path) -> None:
    (repository / "secret.txt").symlink_to("/etc/hostname")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Link")
    (commit,) = store.add_bundle(bundle(repository))
    sources = trees.sources(trees.tree(commit))
    assert sources.text("secret.txt") is None
    assert "secret.txt" not in list(sources.paths())


def test_neither_hooks_nor_filters_of_the_user_take_part(
    store: GitStore, trees: Trees, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    hook = tmp_path / "home" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    (tmp_path / "home" / ".gitconfig").write_text(
        f'[core]\n hooksPath = {hook.parent}\n[filter "x"]\n smudge = touch {ran}; cat\n'
    )
    commit_files(repository, {".gitattributes": "*.py filter=x\n"}, "Filter")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    git(tmp_path, "clone", "--quiet", str(repository), "proof")
    assert ran.exists()
    ran.unlink()
    (commit,) = store.add_bundle(bundle(repository))
    trees.tree(commit)
    assert not ran.exists()


def test_submodules_are_checked_out_where_they_were_sent(
    store: GitStore, trees: Trees, tmp_path: Path, repository: Path
) -> None:
    module = make_repository(tmp_path / "module", {"kernel.py": "k = 1\n"})
    git(repository, "submodule", "--quiet", "add", str(module), "vendor/kernel")
    git(repository, "commit", "-qm", "Submodule")
    store.add_bundle(bundle(module))
    (commit,) = store.add_bundle(bundle(repository))
    assert (trees.tree(commit) / "vendor/kernel/kernel.py").read_text() == "k = 1\n"


def test_trees_of_a_killed_daemon_are_made_anew(
    store: GitStore, trees: Trees, commit: str, tmp_path: Path
) -> None:
    tree = trees.tree(commit)
    (tree / "half-written").write_text("")
    again = Trees(store, tmp_path / "state" / "trees" / "one")
    assert again.tree(commit) == tree
    assert not (tree / "half-written").exists()
