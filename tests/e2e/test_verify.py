"""Verify on a real job: an honest change is accepted with its gain, false ones are rejected."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journey import TINY_JOB, Walk

pytestmark = [pytest.mark.live, pytest.mark.timeout(400)]

SOURCE = TINY_JOB.read_text()
LARGER = SOURCE.replace("MICRO_BATCH = 1\n", "MICRO_BATCH = 32\n")
CHEATS = {
    "fewer rows a step": SOURCE.replace("GLOBAL_BATCH = 32\n", "GLOBAL_BATCH = 16\n"),
    "an update that changes nothing": LARGER.replace(
        "        optimizer.step()\n",
        "        for group in optimizer.param_groups:\n"
        '            group["lr"] = args.lr if step % 2 else 0.0\n'
        "        optimizer.step()\n",
    ),
    "a part that no longer learns": LARGER.replace(
        "self.attention, self.norms", "self.norms, self.attention"
    ).replace("x = x + attention(norm(x))", "x = x + attention(norm(x)).detach()"),
}


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    walk = Walk(tmp_path_factory.mktemp("verify"))
    yield walk
    walk.end()


def verify(walk: Walk, after: str, code: int) -> Any:
    folder = walk.workspace.parent / "after"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    Path(folder, "train.py").write_text(after)
    return walk.json(
        "verify",
        "--before",
        str(walk.workspace),
        "--after",
        str(folder),
        "--launch",
        "OMP_NUM_THREADS=1 python train.py",
        code=code,
    )


def test_an_honest_change_is_accepted_with_its_gain(walk: Walk) -> None:
    answer = verify(walk, LARGER, code=0)
    assert answer["verdict"] == "accepted"
    assert answer["violations"] == []
    assert answer["speedup"] is None or answer["speedup"]["ratio"] > 1


@pytest.mark.parametrize("name", CHEATS)
def test_a_false_speedup_is_rejected(walk: Walk, name: str) -> None:
    assert CHEATS[name] not in (SOURCE, LARGER)
    answer = verify(walk, CHEATS[name], code=1)
    assert answer["verdict"] == "rejected"
    assert answer["violations"] != []
