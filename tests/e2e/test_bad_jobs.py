"""Jobs that cannot be measured: one sentence on what, one on what to do, nothing broken."""

import json
from collections.abc import Iterator

import pytest
from journey import TINY_JOB, Walk

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

SOURCE = TINY_JOB.read_text()
LOOP = "    for step in range(100_000):\n"
BROKEN = {
    "crashes": (
        SOURCE.replace(LOOP, LOOP + '        raise KeyError("no such shard")\n'),
        "no such shard",
    ),
    "hangs": (
        SOURCE.replace(LOOP, LOOP + "        import time\n\n        time.sleep(3600)\n"),
        "no step within 40",
    ),
    "nan": (SOURCE.replace("y.view(-1))", 'y.view(-1)) * float("nan")'), "not finite"),
    "never steps": (
        SOURCE.replace("        optimizer.step()\n", "").replace("SEQ_LEN = 64", "SEQ_LEN = 16"),
        "never called an optimizer",
    ),
    "eats memory": (
        SOURCE.replace(
            LOOP, LOOP + "        hoard = [torch.ones(50_000_000) for _ in range(40)]\n"
        ),
        "ran out of memory",
    ),
    "ends early": (SOURCE.replace("range(100_000)", "range(2)"), "ended after 2 steps"),
}


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    walk = Walk(tmp_path_factory.mktemp("broken"))
    walk.prepare(config="timeout_s = 40\nmemory_limit_gib = 0.5\n")
    yield walk
    walk.end()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_baseline_is_explained(walk: Walk, name: str) -> None:
    source, words = BROKEN[name]
    assert source != SOURCE
    (walk.workspace / "train.py").write_text(source)
    walk.json("lock")
    code, out, err = walk.run("doctor", "--json")
    assert code == 2, err
    error = json.loads(out)["error"]
    assert words in error["what"]
    assert error["what"].count(". ") == 0
    assert error["do"] != ""
    assert walk.git("status", "--porcelain", "--", "train.py") != ""
    assert (walk.workspace / "train.py").read_text() == source
    assert [line for line in walk.jobs() if "bwrap" in line] == []


def test_the_journal_still_holds_every_campaign(walk: Walk) -> None:
    status = walk.json("runner", "status")
    states = [campaign["state"] for campaign in status["campaigns"]]
    assert states == ["failed"] * len(BROKEN)
