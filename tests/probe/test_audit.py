"""The audit on real jobs: honest rewrites redo to rounding, cheats do not come near."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from audits import Tensors, relative_errors, tensors_of
from infrarsi.wire.probe import ProbeConfig
from probe_jobs import JobEnd, run_job

pytestmark = pytest.mark.live
Make = Callable[..., ProbeConfig]


def audited(
    config: Make, *arguments: str, steps: tuple[int, ...], ranks: int = 1
) -> tuple[ProbeConfig, JobEnd]:
    settings = config(audit_steps=steps, warmup_steps=0, window_steps=max(steps) + 1)
    end = run_job(settings, *arguments, ranks=ranks)
    assert [[a.step for a in e.audits] for e in end.evidence] == [list(steps)] * ranks, end.output
    return settings, end


def redone(
    config: Make,
    candidate: ProbeConfig,
    *arguments: str,
    steps: tuple[int, ...],
    ranks: int = 1,
) -> tuple[ProbeConfig, JobEnd]:
    settings = config(mode="redo", redo_steps=steps, redo_dir=candidate.evidence_dir)
    end = run_job(settings, *arguments, ranks=ranks)
    assert end.code == 0, end.output
    for evidence in end.evidence:
        assert (evidence.failure, evidence.unsupported) == (None, ())
        assert [a.step for a in evidence.audits] == list(steps)
    return settings, end


def both(
    a: tuple[ProbeConfig, JobEnd], b: tuple[ProbeConfig, JobEnd], step: int, rank: int = 0
) -> tuple[Tensors, Tensors]:
    first, second = (
        tensors_of(Path(settings.evidence_dir), end.evidence[rank], step)
        for settings, end in (a, b)
    )
    for key, value in second.items():
        if key[0] == "before" or key[0].startswith("state."):
            np.testing.assert_array_equal(first[key], value, err_msg=str(key))
    return first, second


def test_an_honest_rewrite_redoes_to_rounding(config: Make):
    steps = (0, 1, 3)
    candidate = audited(config, "--micro", "8", "--sdpa", "--fused", steps=steps)
    again = redone(config, candidate[0], steps=steps)
    for step in steps:
        first, second = both(candidate, again, step)
        assert max(relative_errors(first, second)) < 1e-5
    assert ("state.exp_avg", "blocks.0.qkv.weight") in both(candidate, again, 3)[0]


def test_compiled_code_is_audited_itself(config: Make):
    candidate = audited(config, "--micro", "8", "--backend", "aot_eager", steps=(2,))
    again = redone(config, candidate[0], "--opt", "adamw", steps=(2,))
    assert max(relative_errors(*both(candidate, again, 2))) < 1e-5


def test_sharded_and_replicated_ranks_redo_each_other(config: Make):
    candidate = audited(config, "--wrap", "ddp", "--micro", "4", steps=(2,), ranks=2)
    again = redone(config, candidate[0], "--wrap", "fsdp", steps=(2,), ranks=2)
    for rank in (0, 1):
        assert max(relative_errors(*both(candidate, again, 2, rank))) < 1e-5


@pytest.mark.parametrize(
    ("cheat", "step", "shows"),
    [("half", 2, 0), ("skip", 2, 1), ("zero_lr", 3, 1), ("detach", 2, 1)],
)
def test_a_cheat_is_far_from_rounding(config: Make, cheat: str, step: int, shows: int):
    candidate = audited(config, "--cheat", cheat, steps=(step,))
    again = redone(config, candidate[0], steps=(step,))
    assert relative_errors(*both(candidate, again, step))[shows] > 0.1


def test_an_audit_over_its_limit_ends_the_job(config: Make):
    end = run_job(config(audit_steps=(2,), audit_limit_bytes=1000))
    (evidence,) = end.evidence
    assert evidence.failure is not None
    assert evidence.failure.kind == "audit_too_large"
    assert evidence.audits == ()


def test_nothing_to_redo_is_a_failure_and_not_a_clean_end(config: Make, tmp_path: Path):
    end = run_job(config(mode="redo", redo_steps=(1,), redo_dir=str(tmp_path)))
    (evidence,) = end.evidence
    assert evidence.failure is not None
    assert "cannot be redone" in evidence.failure.message
