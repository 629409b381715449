"""Process pairs: who runs when, what is timed, what comes of a side that fails."""

import itertools
import os
import random
import signal
from pathlib import Path

import pytest
from stub_runs import make_site, make_tree, processes_of_runs, stub_spec

from infrarsi.trial import Crashed, TimedOut
from infrarsi_runner.live_job import LiveJob
from infrarsi_runner.process_tree import ProcessTree
from infrarsi_runner.run_spec import PairResult, RunSpec
from infrarsi_runner.running import Runs, Side, outcome_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree")


def take_turns(
    folder: Path,
    baseline: RunSpec,
    candidate: RunSpec,
    *,
    first: Side = "baseline",
    audit: bool = False,
    sandbox: str = "auto",
) -> PairResult:
    return Runs(make_site(folder, sandbox)).pair(
        baseline,
        candidate,
        first=first,
        turn_pairs=3,
        steps_per_turn=4,
        audit=audit,
        rng=random.Random(3),
    )


@pytest.mark.parametrize("first", ["baseline", "candidate"])
def test_a_program_against_itself_takes_turns_in_couples(
    tmp_path: Path, tree: Path, first: Side
) -> None:
    result = take_turns(tmp_path, stub_spec(tree), stub_spec(tree), first=first)
    assert result.pair is not None
    assert result.failed is None
    assert result.pair.started_first == first
    couples = zip(result.pair.turns[::2], result.pair.turns[1::2], strict=True)
    assert all({a.side, b.side} == {"baseline", "candidate"} for a, b in couples)
    assert {len(turn.steps_s) for turn in result.pair.turns} == {3}
    assert {r.observation.end for r in (result.baseline, result.candidate)} == {"stopped"}
    assert processes_of_runs(tmp_path) == []


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
def test_only_one_side_moves_at_a_time(tmp_path: Path, tree: Path, sandbox: str) -> None:
    spec = stub_spec(tree, "--ranks", "2")
    result = take_turns(tmp_path, spec, stub_spec(tree), sandbox=sandbox)
    assert result.pair is not None
    moves = sorted(
        (step.at_s, side)
        for side, run in (("baseline", result.baseline), ("candidate", result.candidate))
        for step in run.observation.steps
    )
    changes = [side for side, _ in itertools.groupby(side for _, side in moves)]
    sides = ["baseline", "candidate", *(turn.side for turn in result.pair.turns)]
    expected = [side for side, _ in itertools.groupby([*sides, "baseline", "candidate"])]
    assert changes == expected
    assert result.baseline.observation.cpu_outside_turn_s == 0.0


def test_the_faster_side_is_told(tmp_path: Path, tree: Path) -> None:
    slow = stub_spec(tree, "--step-s", "0.03")
    result = take_turns(tmp_path, slow, stub_spec(tree, "--step-s", "0.001"))
    assert result.pair is not None
    assert all(ratio > 0 for ratio in result.pair.log_ratios())


def test_one_drawn_step_of_the_candidate_is_audited_in_a_turn_of_its_own(
    tmp_path: Path, tree: Path
) -> None:
    result = take_turns(tmp_path, stub_spec(tree), stub_spec(tree), audit=True)
    assert result.pair is not None
    assert len(result.pair.turns) == 6
    (step,) = result.audited_steps
    assert [a.step for e in result.candidate.evidence for a in e.audits] == [step]
    assert [a.step for e in result.baseline.evidence for a in e.audits] == []


def test_where_audits_fall_is_drawn(tmp_path: Path, tree: Path) -> None:
    runs = Runs(make_site(tmp_path))
    steps = {
        runs.pair(
            stub_spec(tree, "--step-s", "0.001"),
            stub_spec(tree, "--step-s", "0.001"),
            first="baseline",
            turn_pairs=3,
            steps_per_turn=8,
            audit=True,
            rng=random.Random(seed),
        ).audited_steps
        for seed in (1, 2, 3)
    }
    assert len(steps) > 1


@pytest.mark.parametrize("at", ["1", "9"])
def test_a_side_that_crashes_is_named_and_the_other_is_not_blamed(
    tmp_path: Path, tree: Path, at: str
) -> None:
    crashing = stub_spec(tree, "--at", at, "crash")
    result = take_turns(tmp_path, stub_spec(tree), crashing)
    assert result.pair is None
    assert result.failed == "candidate"
    outcome = outcome_of(result.candidate, crashing)
    assert isinstance(outcome, Crashed)
    assert "no such luck" in outcome.cause
    assert result.baseline.observation.end == "stopped"
    assert processes_of_runs(tmp_path) == []


def test_when_the_first_side_fails_the_second_is_not_started(tmp_path: Path, tree: Path) -> None:
    crashing = stub_spec(tree, "--at", "0", "crash")
    result = take_turns(tmp_path, stub_spec(tree), crashing, first="candidate")
    assert result.failed == "candidate"
    assert result.baseline.observation.end == "cancelled"
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["0001-stub"]


def test_a_side_that_hangs_in_its_turn_times_out(tmp_path: Path, tree: Path) -> None:
    hanging = stub_spec(tree, "--at", "6", "hang", timeout_s=1.5)
    result = take_turns(tmp_path, stub_spec(tree), hanging)
    assert result.failed == "candidate"
    assert outcome_of(result.candidate, hanging) == TimedOut(limit_s=1.5, last_step=5)


def test_a_script_that_ends_before_the_turns_do_is_told(tmp_path: Path, tree: Path) -> None:
    short = stub_spec(tree, "--steps", "8")
    result = take_turns(tmp_path, short, stub_spec(tree))
    assert result.failed == "baseline"
    assert result.baseline.observation.end == "exit"


def test_time_waited_does_not_count_against_the_limit(tmp_path: Path, tree: Path) -> None:
    slow = stub_spec(tree, "--step-s", "0.1")
    quick = stub_spec(tree, timeout_s=1.5)
    result = take_turns(tmp_path, quick, slow)
    assert result.failed is None
    assert result.baseline.observation.wall_s < 1.5


def test_work_done_outside_its_turn_is_measured(tmp_path: Path, tree: Path) -> None:
    code = "import threading\ndef spin():\n    while True: pass\n"
    code += "threading.Thread(target=spin, daemon=True).start()"
    with LiveJob(stub_spec(tree, "--do", code), make_site(tmp_path)) as job:
        assert job.wait_for_step(1)
        assert job.pause()
        (pid,) = processes_of_runs(tmp_path)[-1:]
        before = ProcessTree(pid).cpu_s()
        os.kill(pid, signal.SIGCONT)
        while ProcessTree(pid).cpu_s() < before + 0.05:
            pass
        assert job.resume() > 0.04
