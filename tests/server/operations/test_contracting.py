"""Two bare folders: whose launch line counts, what is editable, what is refused."""

from pathlib import Path

import pytest
from jobs import TRAIN

from infrarsi.errors import LaunchRefused, UsageError
from infrarsi.launch import parse_launch
from infrarsi_server.operations.check import check_sides
from infrarsi_server.operations.contracting import Sides, open_sides
from infrarsi_server.operations.init import propose_init
from infrarsi_server.operations.verify import refused_report

LAUNCH = '#!/bin/sh\ncd "$(dirname "$0")"\nexec python train.py --config c.yaml "$@"\n'
LOADS = "import yaml\nCONFIG = yaml.safe_load(open('c.yaml'))\n"
FILES = {
    "train.py": LOADS + TRAIN,
    "c.yaml": "name: a\n",
    "launch.sh": LAUNCH,
    "model.py": "WIDTH = 1\n",
    "docs/notes.md": "Notes\n",
}


def folder(root: Path, files: dict[str, str | None]) -> Path:
    for name, text in files.items():
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def sides(tmp_path: Path, launch: str | None = None, **after: str | None) -> Sides:
    before = folder(tmp_path / "before", dict(FILES))
    named = {name.replace("__", "."): text for name, text in after.items()}
    return open_sides(before, folder(tmp_path / "after", {**FILES, **named}), launch, None)


def test_each_folder_is_launched_as_its_own_file_says(tmp_path: Path) -> None:
    found = sides(tmp_path, launch__sh=LAUNCH.replace("exec", "exec env OMP_NUM_THREADS=2"))
    assert found.lock.contract.launch == parse_launch("python train.py --config c.yaml")
    assert found.after_launch == parse_launch("OMP_NUM_THREADS=2 python train.py --config c.yaml")
    assert (found.refused, found.unclear) == (None, None)
    assert refused_report(found) is None


def test_a_launch_line_that_is_given_holds_for_both(tmp_path: Path) -> None:
    found = sides(tmp_path, "python train.py --x", launch__sh="python -S train.py\n")
    given = parse_launch("python train.py --x")
    assert (found.lock.contract.launch, found.after_launch) == (given, given)
    assert found.refused is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("python -S train.py", "S406"),
        ("python -I train.py", "S406"),
        ("env -i python train.py", "S406"),
        ("export LD_PRELOAD=./x.so\npython train.py", "S407"),
        ("python -O train.py", "S415"),
    ],
)
def test_an_after_that_would_disturb_the_measurement_is_rejected(
    tmp_path: Path, line: str, code: str
) -> None:
    found = sides(tmp_path, launch__sh=line)
    report = refused_report(found)
    assert report is not None
    assert (report.verdict, [v.code for v in report.violations]) == ("rejected", [code])
    assert report.violations[0].file == "launch.sh"
    checked = check_sides(found)
    assert code in [v.code for v in checked.violations]
    assert checked.n_errors >= 1


def test_a_job_of_after_that_hides_from_the_measurement_is_rejected_too(tmp_path: Path) -> None:
    job = '[job.main]\nlaunch = "python -I train.py"\npython = "python"\neditable = ["train.py"]\n'
    found = sides(tmp_path, infrarsi__toml=job)
    assert found.refused is not None
    assert found.refused.code == "S406"


def test_an_after_whose_launch_is_not_understood_is_inconclusive(tmp_path: Path) -> None:
    found = sides(tmp_path, launch__sh="for i in 1; do python train.py; done\n")
    report = refused_report(found)
    assert report is not None
    assert report.verdict == "inconclusive"
    assert "launch.sh" in report.missing[0]
    assert "`for`" in report.missing[0]
    assert any("`for`" in problem for problem in check_sides(found).problems)


def test_an_after_that_launches_a_script_that_is_not_there_is_inconclusive(tmp_path: Path) -> None:
    found = sides(tmp_path, launch__sh="python other.py\n")
    assert "other.py" in (found.unclear or "")


@pytest.mark.parametrize("line", ["python train.py | tee log\n", "python -S train.py\n"])
def test_a_before_that_cannot_be_launched_is_an_error(tmp_path: Path, line: str) -> None:
    before = folder(tmp_path / "before", {**FILES, "launch.sh": line})
    after = folder(tmp_path / "after", dict(FILES))
    with pytest.raises(UsageError) as caught:
        open_sides(before, after, None, None)
    assert "launch.sh" in caught.value.what
    assert isinstance(caught.value, LaunchRefused) == ("-S" in line)


def test_script_configuration_and_launch_file_are_open_and_the_rest_is_locked(
    tmp_path: Path,
) -> None:
    found = sides(tmp_path, c__yaml="name: b\n", launch__sh=LAUNCH, new__py="X = 1\n")
    scope = found.lock.contract.scope
    assert scope.editable == ("train.py", "c.yaml", "launch.sh")
    assert scope.locked == ("docs/notes.md", "model.py")
    assert sorted(found.lock.locked_files) == ["docs/notes.md", "model.py"]
    assert [v.file for v in check_sides(found).violations if v.code == "S401"] == []


def test_another_file_that_changed_is_a_violation(tmp_path: Path) -> None:
    found = sides(tmp_path, model__py="WIDTH = 2\n")
    assert [v.file for v in check_sides(found).violations if v.code == "S401"] == ["model.py"]


def test_init_reads_the_launch_file_too(tmp_path: Path) -> None:
    root = folder(tmp_path / "job", dict(FILES))
    (job,) = propose_init(root, None, None, {}, tmp_path).result.jobs
    assert job.launch == "python train.py --config c.yaml"


def test_a_shell_file_that_starts_no_python_is_no_launch_file(tmp_path: Path) -> None:
    files = {"train.py": TRAIN, "run.sh": "docker compose up\n"}
    root = folder(tmp_path / "job", dict(files))
    (job,) = propose_init(root, None, None, {}, tmp_path).result.jobs
    assert job.launch == "python train.py"
