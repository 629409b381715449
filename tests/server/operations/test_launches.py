import pytest
from jobs import TRAIN

from infrarsi.errors import UsageError
from infrarsi.reading import MappingSources
from infrarsi_server.operations.launches import find_launch


def found(texts: dict[str, str]) -> str:
    return find_launch(MappingSources(texts)).script


def test_train_py_at_the_root_wins() -> None:
    assert found({"train.py": TRAIN, "main.py": TRAIN, "deep/train.py": TRAIN}) == "train.py"


def test_a_script_that_only_evaluates_does_not_train() -> None:
    evaluates = TRAIN.replace("(loss / ACCUMULATE).backward()", "pass")
    assert found({"eval.py": evaluates, "pretrain.py": TRAIN}) == "pretrain.py"


def test_tests_and_modules_that_only_define_are_no_scripts() -> None:
    indented = "def train():\n" + "".join(f"    {line}\n" for line in TRAIN.splitlines())
    texts = {"tests/train.py": TRAIN, "test_train.py": TRAIN, "loop.py": indented}
    with pytest.raises(UsageError, match="No training script"):
        found(texts)
    entry = "from loop import train\n\nif __name__ == '__main__':\n    train()\n"
    assert found({**texts, "start.py": entry}) == "start.py"


def test_a_half_typed_script_is_still_looked_at() -> None:
    guarded = f"{TRAIN}\nif __name__ == '__main__':\n    pass\n\nprint((\n"
    assert found({"train.py": guarded}) == "train.py"


def test_equally_likely_scripts_are_named() -> None:
    with pytest.raises(UsageError, match=r"a\.py, b\.py.*--launch \"python a\.py\""):
        found({"a.py": TRAIN, "b.py": TRAIN, "c/train.py": TRAIN})
