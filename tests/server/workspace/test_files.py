from pathlib import Path

from repositories import git, make_repository, write_files

from infrarsi.reading.sources import MappingSources
from infrarsi_server.workspace.files import CommitSources, FolderSources, OverlaySources
from infrarsi_server.workspace.root import Repository


def test_tracked_and_new_files_are_sources_and_ignored_ones_are_not(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a b.py": "a\n", ".gitignore": "*.log\n", "sub/c.py": "c"})
    write_files(root, {"new é.py": "n", "x.log": "l"})
    sources = FolderSources(root)
    assert list(sources.paths()) == [".gitignore", "a b.py", "new é.py", "sub/c.py"]
    assert sources.text("x.log") is None
    assert sources.text("new é.py") == "n"


def test_a_folder_without_git_is_walked_without_its_environments(tmp_path: Path) -> None:
    write_files(tmp_path, {"train.py": "t", ".venv/lib/x.py": "x", "__pycache__/y.py": "y"})
    assert list(FolderSources(tmp_path).paths()) == ["train.py"]


def test_a_folder_the_repository_ignores_is_walked(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {".gitignore": "build/\n"})
    write_files(root, {"build/case/train.py": "t"})
    assert list(FolderSources(root / "build/case").paths()) == ["train.py"]


def test_binary_large_and_escaping_files_have_no_text(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    write_files(tmp_path, {"secret.py": "s", "w/large.py": "#" * 100})
    (tmp_path / "w/binary.py").write_bytes(b"\xff\xfe\0")
    (tmp_path / "w/nul.py").write_bytes(b"a\0b")
    (tmp_path / "w/link.py").symlink_to("../secret.py")
    sources = FolderSources(tmp_path / "w", size_limit_bytes=50)
    assert [sources.text(p) for p in sources.paths()] == [None, None, None, None]


def test_line_ends_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "dos.py").write_bytes(b"a = 1\r\nb = 2\r\n")
    assert FolderSources(tmp_path).text("dos.py") == "a = 1\r\nb = 2\r\n"


def test_submodule_files_are_sources(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"deep.py": "d\n"})
    root = make_repository(tmp_path / "outer", {"a.py": "a\n"})
    git(root, "submodule", "--quiet", "add", str(inner), "lib")
    assert FolderSources(root).text("lib/deep.py") == "d\n"


def test_an_open_document_wins_over_its_file_even_when_empty() -> None:
    base = MappingSources({"a.py": "old", "b.py": "b"})
    overlay = OverlaySources(base, {"a.py": "", "c.py": "c"})
    assert overlay.text("a.py") == ""
    assert overlay.text("b.py") == "b"
    assert list(overlay.paths()) == ["a.py", "b.py", "c.py"]


def test_a_commits_texts_are_those_of_the_workspace_in_it(tmp_path: Path) -> None:
    make_repository(tmp_path, {"job/train.py": "old", "job/data.bin": "a\0b", "other.py": "o"})
    write_files(tmp_path, {"job/train.py": "new"})
    repository = Repository(top=tmp_path, prefix="job/")
    sources = CommitSources(repository, "HEAD")
    assert sources.paths() == ("data.bin", "train.py")
    assert sources.text("train.py") == "old"
    assert sources.text("data.bin") is None
    assert sources.text("other.py") is None
    assert CommitSources(repository, "0" * 40).paths() == ()
