"""One run: how it is watched, how its end is told, what is left of it."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from stub_runs import make_site, make_tree, processes_of_runs, stub_spec, wait_for_a_run

from infrarsi.errors import UsageError
from infrarsi.trial import Completed, Crashed, OutOfMemory, TimedOut, Unstable
from infrarsi_runner.running import RunResult, Runs, RunSpec, outcome_of
from infrarsi_runner.stopping import Cancelled, StopFlag

OF_THIS_RUN = ("evidence_dir", "control_socket", "source_root")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(make_site(tmp_path))


def test_steps_are_timed_from_outside(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, "--step-s", "0.02")
    result = runs.execute(spec)
    outcome = outcome_of(result, spec)
    assert [s.index for s in result.observation.steps] == [0, 1, 2, 3, 4]
    assert isinstance(outcome, Completed)
    assert len(outcome.step_times_s) == spec.window_steps
    assert outcome.step_time_s > 0
    assert outcome.peak_mem_bytes == result.observation.peak_rss_bytes[0] > 1 << 20
    assert result.startup_wall_s > 0


def test_a_step_ends_when_its_last_rank_does(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, "--ranks", "2")
    result = runs.execute(spec)
    assert len(result.evidence) == len(result.observation.peak_rss_bytes) == 2
    assert len(result.observation.steps) == 10
    outcome = outcome_of(result, spec)
    assert isinstance(outcome, Completed)
    assert len(outcome.step_times_s) == 3


def test_without_control_the_probes_own_times_are_taken(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, mode="profile")
    result = runs.execute(spec)
    assert result.observation.steps == ()
    assert isinstance(outcome_of(result, spec), Completed)


def test_endurance_looks_like_a_timed_run_and_ends_at_its_step(runs: Runs, tree: Path) -> None:
    show = "print(Path(os.environ['INFRARSI_PROBE']).read_text())"
    timed = runs.execute(stub_spec(tree, "--do", show))
    spec = stub_spec(tree, "--do", show, mode="endurance", window_steps=24)
    result = runs.execute(spec)
    assert result.observation.end == "finished"
    assert [s.index for s in result.observation.steps] == list(range(24))
    assert _config(result) == _config(timed)


@pytest.mark.parametrize(
    "args", [("--at", "2", "exit"), ("--at", "13", "exit"), ("--steps", "3"), ("--steps", "20")]
)
def test_endurance_that_leaves_early_has_not_finished(
    runs: Runs, tree: Path, args: tuple[str, ...]
) -> None:
    result = runs.execute(stub_spec(tree, *args, mode="endurance", window_steps=24))
    assert result.observation.end == "exit"
    assert result.observation.exit_code == 0
    assert len(result.observation.steps) < 24


def test_an_exception_is_a_crash_with_its_cause(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, "--at", "3", "crash")
    outcome = outcome_of(runs.execute(spec), spec)
    assert isinstance(outcome, Crashed)
    assert outcome.cause == "ValueError: no such luck"
    assert outcome.exit_code == 1
    assert "no such luck" in outcome.log_tail


def test_a_script_that_cannot_even_start_is_a_crash(runs: Runs, tree: Path) -> None:
    (tree / "train.py").write_text("import sys\nraise ImportError('no module named flash')\n")
    spec = stub_spec(tree)
    outcome = outcome_of(runs.execute(spec), spec)
    assert isinstance(outcome, Crashed)
    assert outcome.cause == "ImportError: no module named flash"


def test_a_fatal_signal_is_told(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, "--at", "3", "kill")
    result = runs.execute(spec)
    assert result.observation.end == "signal"
    assert result.observation.signal == 11
    assert isinstance(outcome_of(result, spec), Crashed)


def test_a_hang_times_out_with_the_last_step_seen(runs: Runs, tree: Path, tmp_path: Path) -> None:
    spec = stub_spec(tree, "--at", "3", "hang", timeout_s=1.0)
    assert outcome_of(runs.execute(spec), spec) == TimedOut(limit_s=1.0, last_step=2)
    assert processes_of_runs(tmp_path) == []


def test_a_loss_that_is_not_finite_is_unstable(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, "--at", "3", "nan")
    outcome = outcome_of(runs.execute(spec), spec)
    assert isinstance(outcome, Unstable)
    assert outcome.step == 3


def test_leaving_before_the_window_is_a_crash_that_counts_steps(runs: Runs, tree: Path) -> None:
    spec = stub_spec(tree, "--at", "3", "exit")
    outcome = outcome_of(runs.execute(spec), spec)
    assert isinstance(outcome, Crashed)
    assert outcome.cause == "The job ended after 3 steps, before its window of 5."


def test_a_job_the_probe_never_met_is_a_crash(runs: Runs, tree: Path) -> None:
    (tree / "train.py").write_text("print('nothing to optimise')\n")
    spec = stub_spec(tree)
    outcome = outcome_of(runs.execute(spec), spec)
    assert isinstance(outcome, Crashed)
    assert "no evidence" in outcome.cause


def test_a_rank_that_evades_its_limit_is_ended_from_outside(
    runs: Runs, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infrarsi_runner.sandbox.limits.BASE_ALLOWANCE_BYTES", 1 << 26)
    spec = stub_spec(tree, "--at", "3", "eat", memory_budget_bytes=200 << 20)
    outcome = outcome_of(runs.execute(spec), spec)
    assert isinstance(outcome, OutOfMemory)
    assert 200 << 20 < outcome.at_least_bytes < 4 << 30


def test_what_a_job_did_to_its_files_is_told(runs: Runs, tree: Path) -> None:
    (tree / "eval.py").write_text("1\n")
    (tree / "gone.py").write_text("1\n")
    (tree / "linked.py").write_text("1\n")
    (tree / "same.py").write_text("1\n")
    code = """
Path("eval.py").write_text("2\\n"); Path("gone.py").unlink(); Path("new.py").write_text("")
Path("linked.py").unlink(); Path("linked.py").symlink_to("same.py")
"""
    result = runs.execute(stub_spec(tree, "--do", code))
    assert result.changed_files == ("eval.py", "gone.py", "linked.py")


@pytest.mark.parametrize(
    "code",
    [
        'os.symlink("/etc/hostname", d + "/rank0.json")',
        'os.mkfifo(d + "/rank0.json")',
        'Path(d, "rank0.json").write_text("{}")',
        'os.truncate(os.open(d + "/rank0.json", os.O_CREAT | os.O_RDWR), 1 << 30)',
        'Path(d, "rank0.json").write_text("[" * 100000)',
    ],
)
def test_forged_evidence_counts_as_missing(runs: Runs, tree: Path, code: str) -> None:
    (tree / "train.py").write_text(
        "import json, os\nfrom pathlib import Path\n"
        "d = json.loads(Path(os.environ['INFRARSI_PROBE']).read_text())['evidence_dir']\n" + code
    )
    spec = stub_spec(tree)
    result = runs.execute(spec)
    assert result.evidence == ()
    assert len(result.problems) == 1
    assert isinstance(outcome_of(result, spec), Crashed)


def test_a_flood_of_output_neither_blocks_nor_fills_the_disk(runs: Runs, tree: Path) -> None:
    code = "sys.stdout.write('x' * 1000 + chr(27) + '[31m' + chr(7) + '\\n')\n" * 2
    spec = stub_spec(tree, "--do", f"for _ in range(10000):\n    {code.splitlines()[0]}")
    result = runs.execute(spec)
    assert result.observation.end == "finished"
    assert (Path(result.folder) / "log").stat().st_size == 8 << 20
    assert "\x1b" not in result.observation.log_tail
    assert len(result.observation.log_tail) <= 4000


def test_paths_and_arguments_are_never_parsed_by_a_shell(tmp_path: Path) -> None:
    name = 'it\'s "$(touch pwned)"; train.py'
    tree = make_tree(tmp_path / "a tree; it's", name=name)
    spec = stub_spec(tree, "--do", "print(sys.argv)")
    launch = spec.launch.model_copy(update={"script": name})
    result = Runs(make_site(tmp_path)).execute(replace(spec, launch=launch))
    assert result.observation.end == "finished"
    assert "$(touch pwned)" in result.observation.log_tail


@pytest.mark.parametrize("script", ["../train.py", "/etc/passwd", "a/../../b.py"])
def test_a_script_outside_the_tree_is_refused(runs: Runs, tree: Path, script: str) -> None:
    spec = stub_spec(tree)
    launch = spec.launch.model_copy(update={"script": script})
    with pytest.raises(UsageError, match="not a path inside"):
        runs.execute(replace(spec, launch=launch))


def test_a_python_that_is_not_there_is_a_usage_error(runs: Runs, tree: Path) -> None:
    with pytest.raises(UsageError, match="not an executable file"):
        runs.execute(stub_spec(tree, python="/nonexistent/python"))


def test_a_stop_ends_the_job_and_everything_below_it(tmp_path: Path, tree: Path) -> None:
    stop = StopFlag()
    site = make_site(tmp_path, stop=stop)

    def stop_once_it_runs() -> None:
        wait_for_a_run(tmp_path)
        stop.request()

    thread = threading.Thread(target=stop_once_it_runs)
    thread.start()
    with pytest.raises(Cancelled):
        Runs(site).execute(stub_spec(tree, "--at", "1", "hang"))
    thread.join()
    assert processes_of_runs(tmp_path) == []
    assert [p.name for p in (tmp_path / "runs" / "0001-stub").iterdir() if p.name == "tree"] == []


def test_a_discarded_run_keeps_its_log_only(runs: Runs, tree: Path) -> None:
    result = runs.execute(stub_spec(tree))
    assert [p.name for p in Path(result.evidence_dir).iterdir()] == ["rank0.json"]
    runs.discard(result)
    assert not Path(result.evidence_dir).exists()
    assert (Path(result.folder) / "log").exists()


def test_a_result_survives_json(runs: Runs, tree: Path) -> None:
    result = runs.execute(stub_spec(tree))
    assert RunResult.model_validate_json(result.model_dump_json()) == result
    assert json.loads(result.model_dump_json())["observation"]["end"] == "finished"


def test_the_roof_is_the_last_line_the_probe_prints(tmp_path: Path, runs: Runs) -> None:
    roof = tmp_path / "probe" / "roof.py"
    roof.write_text("print('warming up')\nprint('{\"float32\": 2.5}')\n")
    assert runs.roof(stub_spec(tmp_path).python, 1) == {"float32": 2.5}


def test_editable_roots_resolve_to_the_tree(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    for root, text in ((tmp_path / "workspace", "users"), (tree, "candidates")):
        (root / "src").mkdir(parents=True)
        (root / "src" / "mine.py").write_text(f"WHOSE = '{text}'\n")
    spec: RunSpec = stub_spec(
        tree,
        "--do",
        "import mine; print(mine.WHOSE)",
        editable_roots=(str(tmp_path / "workspace" / "src"),),
    )
    log = Runs(make_site(tmp_path)).execute(spec).observation.log_tail
    assert "candidates" in log


def _config(result: RunResult) -> dict[str, object]:
    """The probe's configuration as the job printed it, without what names this very run."""
    lines = result.observation.log_tail.splitlines()
    config = json.loads(next(line for line in lines if line.startswith("{")))
    return {k: v for k, v in config.items() if k not in OF_THIS_RUN}
