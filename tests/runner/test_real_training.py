"""Real torch jobs under the real probe, in the sandbox."""

import random
import sys
from pathlib import Path

import pytest
from stub_runs import make_site, make_tree

from infrarsi.launch import Launch
from infrarsi.trial import OutOfMemory, Unstable
from infrarsi_runner.running import Runs, RunSpec, outcome_of
from infrarsi_runner.surroundings import find_probe

pytestmark = pytest.mark.live

TRAINING = Path(__file__).parents[1] / "support" / "tiny_training.py"
MIB = 1 << 20


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree", TRAINING)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(make_site(tmp_path, probe=find_probe()))


def spec(tree: Path, *args: str, ranks: int = 1, budget: int | None = None) -> RunSpec:
    launcher = "torchrun" if ranks > 1 else "python"
    return RunSpec(
        tree=tree,
        launch=Launch(launcher=launcher, n_processes=ranks, script="train.py", args=args),
        python=sys.executable,
        mode="timed",
        timeout_s=120,
        window_steps=8,
        threads=1,
        memory_budget_bytes=budget,
        label="tiny",
    )


def test_out_of_memory_under_a_budget_is_a_lower_bound(runs: Runs, tree: Path) -> None:
    asked = spec(tree, "oom", budget=400 * MIB)
    outcome = outcome_of(runs.execute(asked), asked)
    assert isinstance(outcome, OutOfMemory)
    assert outcome.requested_bytes == 128 * MIB
    assert outcome.limit_bytes is not None
    assert outcome.at_least_bytes > 400 * MIB


def test_the_rank_that_ran_out_of_memory_is_named(runs: Runs, tree: Path) -> None:
    asked = spec(tree, "oom", "1", ranks=2, budget=400 * MIB)
    result = runs.execute(asked)
    outcome = outcome_of(result, asked)
    assert isinstance(outcome, OutOfMemory)
    assert outcome.rank == 1
    assert len(result.observation.peak_rss_bytes) == 2


def test_losses_that_are_not_numbers_are_unstable(runs: Runs, tree: Path) -> None:
    asked = spec(tree, "nan")
    outcome = outcome_of(runs.execute(asked), asked)
    assert isinstance(outcome, Unstable)
    assert outcome.step == 3
    assert outcome.step_time_s is not None


def test_a_job_against_itself_takes_turns_and_is_audited(runs: Runs, tree: Path) -> None:
    result = runs.pair(
        spec(tree),
        spec(tree),
        first="baseline",
        turn_pairs=2,
        steps_per_turn=5,
        audit=True,
        rng=random.Random(1),
    )
    assert result.pair is not None
    assert len(result.pair.log_ratios()) == 2
    (evidence,) = result.candidate.evidence
    assert tuple(audit.step for audit in evidence.audits) == result.audited_steps
    files = {path.name for path in Path(result.candidate.evidence_dir).iterdir()}
    assert {audit.file for audit in evidence.audits} < files
