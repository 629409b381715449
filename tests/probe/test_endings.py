"""How jobs end: cleanly by the probe, by themselves, or badly. Evidence is there in each case."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_jobs import JobEnd, Runner, read_evidence, run_job, start_job

from infrarsi.wire.probe import ProbeConfig, ProbeFailure

pytestmark = pytest.mark.live
Make = Callable[..., ProbeConfig]

START = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def script(folder: Path, body: str) -> Path:
    path = folder / "a job's script.py"
    path.write_text(START + textwrap.dedent(body))
    return path


def failure(end: JobEnd) -> ProbeFailure:
    (evidence,) = end.evidence
    assert evidence.failure is not None
    return evidence.failure


def test_whatever_a_script_does_to_the_probe_is_named_even_where_it_then_fails(
    config: Make, tmp_path: Path
):
    for folder in ("tree", "elsewhere"):
        (tmp_path / folder / "mylib").mkdir(parents=True)
        (tmp_path / folder / "mylib" / "__init__.py").write_text("")
    path = script(
        tmp_path / "tree",
        f"""
        import sys, time
        sys.path.insert(0, {str(tmp_path / "elsewhere")!r})
        import mylib
        real = time.perf_counter
        time.perf_counter = lambda: real() / 2
        backward = torch.autograd.backward
        torch.autograd.backward = lambda *a, **k: backward(*a, **k)
        step()
        model(torch.ones(2, 4)).sum().backward()
        with torch.no_grad():
            model.weight += 1
        optimizer.step()
        torch.ones(2) @ torch.ones(3)  # this line
        """,
    )
    end = run_job(config(source_root=str(tmp_path / "tree")), script=path)
    found = failure(end)
    assert end.code == 1
    assert "Traceback" in end.output
    assert (found.kind, found.file) == ("exception", str(path))
    assert "this line" in path.read_text().splitlines()[(found.line or 0) - 1]
    (evidence,) = end.evidence
    expected = {"time.perf_counter replaced", "torch.autograd.backward replaced"}
    assert set(evidence.tampering) == expected
    assert evidence.unsupported == ("parameters changed without an optimizer call",)
    assert evidence.outside_imports == ("mylib",)


def test_a_run_without_control_ends_a_script_that_swallows_everything(config: Make, tmp_path: Path):
    path = script(
        tmp_path,
        """
        while True:
            try:
                step()
            except:
                pass
        """,
    )
    end = run_job(config(window_steps=6), script=path)
    assert (end.code, end.evidence[0].failure) == (0, None)
    assert [s.index for s in end.evidence[0].steps] == list(range(1, 7))


def test_running_out_of_the_budget_is_told_apart_with_the_size_asked_for(
    config: Make, tmp_path: Path
):
    path = script(tmp_path, "step()\nkeep = [torch.ones(1 << 28) for _ in range(8)]\n")
    found = failure(run_job(config(memory_budget_bytes=2 << 30), script=path))
    assert found.kind == "oom"
    assert found.requested_bytes == 4 << 28


def test_backward_after_backward_without_a_step_ends_the_job(config: Make, tmp_path: Path):
    path = script(
        tmp_path,
        """
        del optimizer, step
        while True:
            model(torch.ones(2, 4)).sum().backward()
        """,
    )
    found = failure(run_job(config(), script=path))
    assert (found.kind, "64 backward" in found.message) == ("no_optimizer_step", True)


def test_a_script_that_ends_too_early_says_how_far_it_came(config: Make, tmp_path: Path):
    path = script(tmp_path, "step()\nstep()\nraise SystemExit(0)\n")
    end = run_job(config(), script=path)
    assert end.code == 0
    assert (failure(end).kind, "2 of 4 steps" in failure(end).message) == ("exit", True)
    assert [s.index for s in end.evidence[0].steps] == [1]


def test_the_runner_stops_all_ranks_after_the_same_step(config: Make, tmp_path: Path):
    ranks = 2
    runner = Runner(tmp_path / "control")
    settings = config(control_socket=str(runner.path), audit_steps=())
    job = start_job(settings, "--wrap", "ddp", ranks=ranks)
    asked = False
    while sum(line["type"] == "end" for _, _, line in runner.lines) < ranks:
        for _, _, line in runner.read():
            if not asked and line["type"] == "step" and line["index"] == 5:
                asked = True
                runner.send(type="audit", step=9)
                runner.send(type="stop", after=12)
    output, _ = job.communicate(timeout=60)
    runner.close()
    assert job.returncode == 0, output
    by_rank = [[line for n, _, line in runner.lines if n == r] for r in range(ranks)]
    for lines in by_rank:
        assert [line["type"] for line in lines] == ["hello", *["step"] * 13, "bye", "end"]
        assert lines[0]["world_size"] == ranks
        assert lines[-2]["reason"] == "stopped"
    for evidence in read_evidence(Path(settings.evidence_dir)):
        assert evidence.steps[-1].index == 12
        assert [a.step for a in evidence.audits] == [9]


def test_a_runner_that_goes_away_ends_the_job(config: Make, tmp_path: Path):
    runner = Runner(tmp_path / "control")
    settings = config(control_socket=str(runner.path))
    job = start_job(settings)
    while not any(line["type"] == "step" for _, _, line in runner.lines):
        runner.read()
    runner.disconnect()
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 0, output
    (evidence,) = read_evidence(Path(settings.evidence_dir))
    assert evidence.failure is not None
    assert "runner" in evidence.failure.message
