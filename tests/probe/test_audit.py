"""The audit on real jobs: honest rewrites redo to rounding, cheats do not come near."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from audits import Tensors, relative_errors, tensors_of
from probe_jobs import JobEnd, run_job

from infrarsi.wire.probe import ProbeConfig, RankEvidence

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
    autocast: Literal["bfloat16"] | None = None,
) -> tuple[ProbeConfig, JobEnd]:
    settings = config(
        mode="redo",
        warmup_steps=0,
        redo_steps=steps,
        redo_dir=candidate.evidence_dir,
        autocast=autocast,
    )
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


CHEATS = "2=half,3=detach,4=zero_lr,6=skip"


def test_honest_steps_redo_to_rounding_and_cheats_do_not_come_near(config: Make):
    steps = (0, 1, 2, 3, 4, 5, 6)
    rewrite = ("--micro", "8", "--sdpa", "--fused")
    candidate = audited(config, *rewrite, "--cheat", CHEATS, steps=steps)
    again = redone(config, candidate[0], steps=steps)
    pairs = {step: both(candidate, again, step) for step in steps}
    gradient, update = (
        {step: relative_errors(*pair)[which] for step, pair in pairs.items()} for which in (0, 1)
    )
    for step in (0, 1, 5):
        assert max(gradient[step], update[step]) < 1e-5
    for step in (2, 3, 6):
        assert gradient[step] > 0.1
        assert update[step] > 0.1
    assert gradient[4] < 1e-5
    assert update[4] == pytest.approx(1.0)
    assert ("state.exp_avg", "blocks.0.qkv.weight") in pairs[3][0]


def test_the_reference_arm_strays_as_far_as_16_bit_rounding_goes(config: Make):
    candidate = audited(config, steps=(1, 3))
    arm = redone(config, candidate[0], steps=(1, 3), autocast="bfloat16")
    for step in (1, 3):
        gradient, _ = relative_errors(*both(candidate, arm, step))
        assert 1e-4 < gradient < 0.05
    (evidence,) = arm[1].evidence
    assert {s.loss_dtype for s in evidence.steps} == {"float32"}


def test_compiled_code_is_audited_itself(config: Make):
    candidate = audited(config, "--micro", "8", "--backend", "aot_eager", steps=(2,))
    again = redone(config, candidate[0], "--opt", "adamw", steps=(2,))
    assert max(relative_errors(*both(candidate, again, 2))) < 1e-5


def rows_of_all_ranks(end: JobEnd, step: int) -> tuple[int, str]:
    records = [e.steps[step] for e in end.evidence]
    total = sum(int(r.inputs_hash or "0", 16) for r in records)
    return sum(r.rows for r in records), format(total % (1 << 64), "016x")


def test_sharded_and_replicated_ranks_redo_each_other(config: Make, reference: RankEvidence):
    candidate = audited(config, "--wrap", "ddp", "--micro", "4", steps=(2,), ranks=2)
    again = redone(config, candidate[0], "--wrap", "fsdp", steps=(2,), ranks=2)
    for rank in (0, 1):
        assert max(relative_errors(*both(candidate, again, 2, rank))) < 1e-5
    one = reference.steps[1]
    assert one.index == 2
    for _, end in (candidate, again):
        assert end.evidence[1].world_size == 2
        assert rows_of_all_ranks(end, 2) == (one.rows, one.inputs_hash)


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
