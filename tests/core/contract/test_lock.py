import json

import pytest

from infrarsi.contract import (
    Fact,
    Scope,
    TaskContract,
    Workload,
    make_lock,
    matches,
    read_locks,
    verify_digest,
    write_locks,
)
from infrarsi.errors import ConfigError
from infrarsi.launch import Launch

CONTRACT = TaskContract(
    job="dense",
    launch=Launch(script="train.py", args=("--nam\u00e9",)),
    workload=Workload(global_batch_rows=64, seq_len_tokens=128),
    facts=(Fact(name="lr", value=1e-3), Fact(name="clip", value=1.0), Fact(name="x", value=1)),
    scope=Scope(editable=("train.py",), locked=("data/**",)),
)
LOCK = make_lock(CONTRACT, {"data/b": "2" * 64, "data/a": "1" * 64}, "c0ffee")


def test_a_fresh_lock_holds_its_digest():
    assert verify_digest(LOCK)
    assert len(LOCK.digest) == 64


def test_the_digest_does_not_depend_on_the_order_of_files():
    again = make_lock(CONTRACT, {"data/a": "1" * 64, "data/b": "2" * 64}, "c0ffee")
    assert again == LOCK


@pytest.mark.parametrize(
    "change",
    [
        {"baseline_commit": "dead"},
        {"locked_files": {}},
        {"contract": CONTRACT.model_copy(update={"seed": 1})},
    ],
)
def test_any_change_breaks_the_digest(change: dict[str, object]):
    assert not verify_digest(LOCK.model_copy(update=change))


def test_the_file_reads_back_and_is_stable():
    text = write_locks({"dense": LOCK})
    assert read_locks(text) == {"dense": LOCK}
    assert write_locks(read_locks(text)) == text
    assert text.endswith("}\n")
    assert "namé" in text


def test_a_tampered_lock_is_refused_by_its_name():
    text = write_locks({"dense": LOCK}).replace('"global_batch_rows": 64', '"global_batch_rows": 8')
    with pytest.raises(ConfigError, match="`dense`") as caught:
        read_locks(text)
    assert "infrarsi lock" in caught.value.do


def test_a_lock_under_another_name_is_refused():
    content = json.loads(write_locks({"dense": LOCK}))
    content["jobs"]["moe"] = content["jobs"].pop("dense")
    with pytest.raises(ConfigError, match="`moe`"):
        read_locks(json.dumps(content))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"version": 2, "jobs": {}}', '{"jobs": {"a": 1}}']
)
def test_a_broken_lock_file_is_refused(text: str):
    with pytest.raises(ConfigError) as caught:
        read_locks(text)
    assert "infrarsi lock" in caught.value.do


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        ("data/a.txt", "**/data/**", True),
        ("examples/x/data/sub/a.txt", "**/data/**", True),
        ("mydata/a.txt", "**/data/**", False),
        ("a.bin", "*.bin", True),
        ("deep/down/a.bin", "*.bin", True),
        ("a.binx", "*.bin", False),
        ("data/a.txt", "data/*.txt", True),
        ("data/sub/a.txt", "data/*.txt", False),
        ("x/data/a.txt", "data/*.txt", False),
        ("data/sub/a.txt", "data/", True),
        ("data", "data/", False),
        ("train.py", "./train.py", True),
        ("src/train.py", "src/tr?in.py", True),
        ("a+b.py", "a+b.py", True),
        ("train.py", "train.py", True),
        ("old/train.py", "train.py", False),
        ("a.bin", "/*.bin", True),
        ("data/a.bin", "/*.bin", False),
    ],
)
def test_globs_mean_what_they_mean_in_gitignore(path: str, glob: str, expected: bool):
    assert matches(path, [glob]) is expected
