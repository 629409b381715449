"""From a slow script to a verified commit, the daemon killed on the way."""

from collections.abc import Iterator
from typing import Any

import pytest
from journey import Walk
from repositories import visible_state

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

N_TRIALS = 3


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    walk = Walk(tmp_path_factory.mktemp("walk"))
    walk.prepare()
    yield walk
    walk.end()


@pytest.fixture(scope="module")
def doctor(walk: Walk) -> Any:
    return walk.json("doctor")


@pytest.fixture(scope="module")
def report(walk: Walk, doctor: Any) -> Any:
    """A run whose daemon is killed once after its first trial and once in its confirmation."""
    run = walk.start("run", "--trials", str(N_TRIALS), "--minutes", "10", "--id", "killed")
    assert run.stderr is not None
    for moment in ("trial 1:", "unit 1, candidate started first"):
        seen = ""
        while moment not in seen:
            seen = run.stderr.readline()
            assert seen, f"the run ended before {moment!r}"
        walk.kill_daemon()
    out, err = run.communicate()
    assert run.returncode == 0, (out, err)
    return walk.json("report")


def test_doctor_finds_phases_that_sum_to_the_step(doctor: Any) -> None:
    profile = doctor["profile"]
    phases = ("data", "forward", "backward", "communication", "optimizer", "other")
    total = sum(profile[f"{phase}_s"] for phase in phases)
    assert total == pytest.approx(profile["step_time_s"], rel=0.05)
    assert doctor["calibration"]["tokens_per_step"] == 2048
    assert 0 < doctor["calibration"]["mfu_frac"] < 1


def test_no_trial_is_lost_or_doubled_by_a_kill(report: Any) -> None:
    assert [trial["number"] for trial in report["trials"]] == list(range(N_TRIALS + 1))
    settings = [str(trial["setting"]) for trial in report["trials"]]
    assert len(set(settings)) == len(settings)


def test_a_gain_is_promoted_with_its_interval(report: Any) -> None:
    promoted = report["promoted"]
    assert promoted is not None, report["finalists"]
    speedup = promoted["speedup"]
    assert 1.01 < speedup["low"] <= speedup["ratio"] <= speedup["high"]
    assert promoted["mfu_after_frac"] > promoted["mfu_before_frac"]
    assert {part["knob"] for part in promoted["parts"]} != set()


def test_nothing_is_left_running(walk: Walk, report: Any) -> None:
    assert [line for line in walk.jobs() if "bwrap" in line] == []


def test_apply_commits_on_a_branch_and_takes_it_back(walk: Walk, report: Any) -> None:
    before = visible_state(walk.workspace)
    applied = walk.json("apply")
    branch = applied["branch"]
    message = walk.git("log", "-1", "--format=%B", branch)
    assert "Infrarsi-Speedup: " in message
    assert walk.git("diff", "--name-only", f"{branch}~1", branch) != ""
    walk.json("apply", "--revert")
    assert walk.git("diff", "main" if "main" in before["branch"] else "HEAD", branch) == ""
    after = visible_state(walk.workspace)
    assert {k: before[k] for k in ("head", "index", "status", "files")} == {
        k: after[k] for k in ("head", "index", "status", "files")
    }
