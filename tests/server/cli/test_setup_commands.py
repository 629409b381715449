import json
from pathlib import Path

import pytest
from command_line import CommandLine
from jobs import JOB, TRAIN
from repositories import commit_files, git, make_repository, write_files

CONFIG = "infrarsi.toml"
LOCK = ".infrarsi/contract.lock.json"


@pytest.fixture
def job(root: Path) -> Path:
    return make_repository(root, JOB)


def understood(content: dict[str, list[dict[str, list[dict[str, object]]]]]) -> dict[str, object]:
    return {str(fact["name"]): fact["value"] for fact in content["jobs"][0]["facts"]}


def test_init_reads_the_job_and_writes_what_it_understood(job: Path, infrarsi: CommandLine) -> None:
    done = infrarsi("init", "--json")
    content = done.json("init")
    assert done.code == 0
    assert content["written"] is True
    facts = understood(content)
    assert (facts["micro_batch"], facts["accumulation"], facts["seq_len"]) == (4, 2, 64)
    text = (job / CONFIG).read_text()
    assert 'launch = "python train.py"' in text
    assert "global_batch" in text


def test_init_twice_changes_nothing_even_after_edits(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    edited = (job / CONFIG).read_text().replace("[job.main]", "# mine\n[job.main]")
    (job / CONFIG).write_text(edited)
    content = infrarsi("init", "--json").json("init")
    assert content["written"] is False
    infrarsi("init", "--launch", "python train.py")
    assert (job / CONFIG).read_text() == edited


def test_init_for_people_names_places_and_what_is_not_known(
    job: Path, infrarsi: CommandLine
) -> None:
    write_files(job, {"train.py": TRAIN.replace("BATCH_SIZE = 4", "BATCH_SIZE = int(input())")})
    done = infrarsi("init")
    assert "train.py:6:11" in done.out
    assert "micro_batch" in done.out
    assert "?" in done.out
    assert "Wrote" in done.err


def test_init_takes_a_launch_line_and_an_interpreter(job: Path, infrarsi: CommandLine) -> None:
    done = infrarsi("init", "--launch", "X=1 torchrun --nproc-per-node 2 train.py", "--json")
    [understood_job] = done.json("init")["jobs"]
    assert understood_job["launch"].startswith("X=1 torchrun")
    second = infrarsi("init", "--launch", "python train.py", "--json").json("init")
    assert [j["job"] for j in second["jobs"]] == ["main", "train"]
    assert [j["is_new"] for j in second["jobs"]] == [False, True]


def test_init_records_the_given_interpreter_relative_to_the_workspace(
    job: Path, infrarsi: CommandLine
) -> None:
    (job / "env/bin").mkdir(parents=True)
    (job / "env/bin/python").symlink_to("/usr/bin/env")
    infrarsi("init", "--python", "env/bin/python")
    assert 'python = "env/bin/python"' in (job / CONFIG).read_text()
    missing = infrarsi("init", "--launch", "python train.py --x", "--python", "nowhere/python")
    assert missing.code == 2
    assert "nowhere/python" in missing.err


def test_init_of_a_subfolder_by_launch_stays_there(tmp_path: Path, infrarsi: CommandLine) -> None:
    make_repository(infrarsi.folder, {f"jobs/{name}": text for name, text in JOB.items()})
    infrarsi.folder = infrarsi.folder / "jobs"
    infrarsi("init", "--launch", "python train.py")
    assert (infrarsi.folder / CONFIG).is_file()


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"notes.py": "x = 1\n"}, [], "No training script was found"),
        ({"a.py": TRAIN, "b.py": TRAIN}, [], "several training scripts: a.py, b.py"),
        (JOB, ["--launch", "python other.py"], "other.py is not in the workspace"),
        (JOB, ["--launch", "python train.py; rm -rf ~"], "shell syntax"),
        (JOB, ["--launch", "bash run.sh"], "`bash` is not understood"),
        ({**JOB, CONFIG: "[job.main]\nlaunch = 3\n"}, [], "line 2"),
        ({**JOB, CONFIG: "[job.main\n"}, [], "line 1"),
        (JOB, ["nowhere"], "nowhere is not a folder"),
    ],
)
def test_init_says_in_two_sentences_what_is_wrong(
    root: Path, infrarsi: CommandLine, files: dict[str, str], arguments: list[str], message: str
) -> None:
    make_repository(root, files)
    done = infrarsi("init", *arguments, "--json")
    error = done.json("error")["error"]
    assert done.code == 2
    assert message in error["what"]
    assert error["do"]
    assert error["what"] in done.err
    assert (root / CONFIG).exists() == (CONFIG in files)


def test_lock_freezes_contract_files_and_commit(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    done = infrarsi("lock", "--json")
    content = done.json("lock")
    [locked] = content["jobs"]
    assert done.code == 0
    assert locked["baseline_commit"] == git(job, "rev-parse", "HEAD")
    assert locked["n_locked_files"] == 1
    assert content["uncommitted"] == [CONFIG]
    stored = json.loads((job / LOCK).read_text())["jobs"]["main"]
    assert stored["digest"] == locked["digest"]
    assert list(stored["locked_files"]) == ["data/text.txt"]


def test_locking_again_keeps_the_digest_until_something_it_holds_changes(
    job: Path, infrarsi: CommandLine
) -> None:
    infrarsi("init")
    first = infrarsi("lock", "--json").json("lock")["jobs"][0]
    commit_files(job, {"README.md": "r\n"}, "Elsewhere")
    again = infrarsi("lock", "--json").json("lock")
    assert again["written"] is False
    assert again["jobs"][0]["digest"] == first["digest"]
    commit_files(job, {"train.py": TRAIN + "print(1)\n"}, "Source")
    moved = infrarsi("lock", "--json").json("lock")["jobs"][0]
    assert moved["changed"] is True
    assert moved["baseline_commit"] != first["baseline_commit"]


def test_lock_lists_facts_the_contract_cannot_hold(job: Path, infrarsi: CommandLine) -> None:
    write_files(job, {"train.py": TRAIN.replace("SEQ_LEN = 64", "SEQ_LEN = int(input())")})
    infrarsi("init")
    content = infrarsi("lock", "--json").json("lock")
    unknown = {fact["name"]: fact["unknown"] for fact in content["jobs"][0]["unknown"]}
    assert "seq_len" in unknown
    assert "train.py" in content["uncommitted"]
    assert "not held: seq_len" in infrarsi("lock").out


def test_lock_without_git_or_commit_or_job_is_refused(root: Path, infrarsi: CommandLine) -> None:
    write_files(root, JOB)
    assert infrarsi("init").code == 0
    outside = infrarsi("lock")
    assert (outside.code, "git init" in outside.err) == (2, True)
    git(root, "init", "--quiet")
    empty = infrarsi("lock")
    assert (empty.code, "no commit yet" in empty.err) == (2, True)
    commit_files(root, {}, "All")
    (root / CONFIG).unlink()
    assert "infrarsi init" in infrarsi("lock").err
    assert not (root / LOCK).exists()


def test_a_broken_lock_is_said_and_locking_again_mends_it(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    text = (job / LOCK).read_text()
    for broken in ("{", text.replace('"seq_len_tokens": 64', '"seq_len_tokens": 32')):
        (job / LOCK).write_text(broken)
        done = infrarsi("check")
        assert (done.code, "infrarsi lock" in done.err) == (2, True)
        assert infrarsi("lock").code == 0
        assert (job / LOCK).read_text() == text


def test_a_kept_contract_checks_clean(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    done = infrarsi("check", "--json")
    assert done.code == 0
    assert done.json("check") == {"job": "main", "violations": [], "problems": []}
    compensated = TRAIN.replace("BATCH_SIZE = 4", "BATCH_SIZE = 8").replace(
        "ACCUMULATE = 2", "ACCUMULATE = 1"
    )
    write_files(job, {"train.py": compensated})
    assert infrarsi("check").code == 0


def test_a_broken_contract_is_found_in_every_format(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    write_files(job, {"train.py": TRAIN.replace("BATCH_SIZE = 4", "BATCH_SIZE = 8")})
    done = infrarsi("check", "--json")
    [found] = done.json("check")["violations"]
    assert done.code == 1
    assert (found["code"], found["family"], found["file"]) == ("W101", "workload", "train.py")
    assert (found["line"], found["severity"]) == (4, "error")
    assert infrarsi("check").out.startswith("train.py:4:14: error W101 ")
    assert infrarsi("check", "--format", "github").out.startswith("::error file=train.py,line=4")
    sarif = json.loads(infrarsi("check", "--format", "sarif").out)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "W101"
    assert infrarsi("check", "--format", "json").json("check")["violations"] == [found]


def test_an_edited_or_missing_locked_file_is_found(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    write_files(job, {"data/text.txt": "other"})
    assert [v["code"] for v in infrarsi("check", "--json").json("check")["violations"]] == ["S401"]
    (job / "data/text.txt").unlink()
    assert "is gone" in infrarsi("check").out


def test_half_typed_code_is_a_problem_and_no_error(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    write_files(job, {"train.py": TRAIN + "\nprint((\n"})
    done = infrarsi("check", "--json")
    assert done.code == 0
    [problem] = done.json("check")["problems"]
    assert problem.startswith("train.py:")


def test_an_unlocked_job_cannot_be_checked(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    done = infrarsi("check")
    assert (done.code, "infrarsi lock" in done.err) == (2, True)


def test_two_folders_are_compared_without_any_lock(tmp_path: Path, infrarsi: CommandLine) -> None:
    write_files(tmp_path / "b 1", JOB)
    write_files(
        tmp_path / "a 1", {**JOB, "train.py": TRAIN.replace("ACCUMULATE = 2", "ACCUMULATE = 1")}
    )
    arguments = ("check", "--before", tmp_path / "b 1", "--after", tmp_path / "a 1", "--json")
    done = infrarsi(*arguments)
    assert done.code == 1
    assert [v["code"] for v in done.json("check")["violations"]] == ["W101"]
    same = infrarsi("check", "--before", tmp_path / "b 1", "--after", tmp_path / "b 1", "--json")
    assert (same.code, same.json("check")["violations"]) == (0, [])


def test_before_and_after_belong_together(tmp_path: Path, infrarsi: CommandLine) -> None:
    assert infrarsi("check", "--before", tmp_path).code == 2
    missing = infrarsi("check", "--before", tmp_path, "--after", tmp_path / "none")
    assert (missing.code, "none is not a folder" in missing.err) == (2, True)


def test_the_before_folders_own_lock_is_the_contract(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    after = write_files(job.parent / "after", {**JOB, "data/text.txt": "other"})
    done = infrarsi("check", "--before", job, "--after", after, "--json")
    assert [v["code"] for v in done.json("check")["violations"]] == ["S401"]


def test_an_unknown_option_is_a_usage_error_in_json_too(infrarsi: CommandLine) -> None:
    done = infrarsi("check", "--nonsense", "--json")
    assert done.code == 2
    assert "--nonsense" in done.json("error")["error"]["what"]
    assert infrarsi("nonsense").code == 2
    assert infrarsi().code == 2


def test_a_ci_service_gets_names_from_the_repositorys_top(infrarsi: CommandLine) -> None:
    make_repository(infrarsi.folder, {f"jobs/{name}": text for name, text in JOB.items()})
    infrarsi("init", "jobs")
    infrarsi("lock", "jobs")
    write_files(infrarsi.folder, {"jobs/data/text.txt": "other"})
    assert infrarsi("check", "jobs", "--format", "github").out.startswith("::error file=jobs/data/")
    sarif = json.loads(infrarsi("check", "jobs", "--format", "sarif").out)
    [location] = sarif["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "jobs/data/text.txt"
    assert infrarsi("check", "jobs").out.startswith("data/text.txt:1:1: error S401")


def test_a_script_that_is_gone_is_no_kept_contract(job: Path, infrarsi: CommandLine) -> None:
    infrarsi("init")
    infrarsi("lock")
    (job / "train.py").unlink()
    done = infrarsi("check")
    assert (done.code, "train.py" in done.err) == (2, True)
    assert infrarsi("lock").code == 2
