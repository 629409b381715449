"""Listings that are kept see what comes and goes."""

from pathlib import Path

import pytest

from infrarsi_server.workspace import listings as module
from infrarsi_server.workspace.git import Git
from infrarsi_server.workspace.listings import Listings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Git(tmp_path).run("init", "--quiet")
    (tmp_path / "pkg").mkdir()
    for name in ("train.py", "pkg/model.py", ".gitignore"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_git_is_not_asked_again_while_nothing_moved(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = Listings()
    first = listings.paths(root)
    monkeypatch.setattr(module, "list_files", None)
    assert listings.paths(root) == first == (".gitignore", "pkg/model.py", "train.py")


def test_new_files_and_folders_are_seen(root: Path) -> None:
    listings = Listings()
    listings.paths(root)
    (root / "pkg/new.py").write_text("")
    assert "pkg/new.py" in listings.paths(root)
    (root / "other").mkdir()
    assert "pkg/new.py" in listings.paths(root)
    (root / "other/late.py").write_text("")
    assert "other/late.py" in listings.paths(root)


def test_files_that_went_are_not_listed(root: Path) -> None:
    listings = Listings()
    listings.paths(root)
    (root / "train.py").unlink()
    assert "train.py" not in listings.paths(root)


def test_an_ignore_file_that_changed_counts(root: Path) -> None:
    listings = Listings()
    listings.paths(root)
    (root / ".gitignore").write_text("train.py\n")
    assert "train.py" not in listings.paths(root)


def test_a_file_that_is_tracked_in_spite_of_being_ignored_is_listed(root: Path) -> None:
    (root / ".gitignore").write_text("train.py\n")
    listings = Listings()
    assert "train.py" not in listings.paths(root)
    Git(root).run("add", "--force", "train.py")
    assert "train.py" in listings.paths(root)


def test_what_is_told_is_looked_at_again(root: Path) -> None:
    listings = Listings()
    (root / "a/b").mkdir(parents=True)
    listings.paths(root)
    (root / "a/b/c.py").write_text("")
    listings.forget()
    assert "a/b/c.py" in listings.paths(root)
