"""Where a step goes: planted delays are found in their phase, and phases sum to the step."""

from collections.abc import Callable

import pytest
from probe_jobs import TRAIN, run_job

from infrarsi.wire.probe import FlopCount, ProbeConfig, Profile

pytestmark = pytest.mark.live
Make = Callable[..., ProbeConfig]
LINES = TRAIN.read_text().splitlines()


def line_of(text: str) -> int:
    (found,) = (n for n, line in enumerate(LINES, 1) if line.strip() == text)
    return found


def phases(profile: Profile) -> dict[str, float]:
    return {
        name: getattr(profile, f"{name}_s")
        for name in ("data", "forward", "backward", "communication", "optimizer", "other")
    }


def profiled(config: Make, *arguments: str, ranks: int = 1, **fields: object) -> Profile:
    settings = config(mode="profile", source_root=str(TRAIN.parent), **fields)
    end = run_job(settings, *arguments, ranks=ranks)
    profile = end.evidence[0].profile
    assert profile is not None, end.output
    assert sum(phases(profile).values()) == pytest.approx(profile.step_time_s, rel=0.05)
    return profile


PLANTED = {"data": 0.04, "forward": 0.03, "backward": 0.05, "optimizer": 0.06, "other": 0.07}


def test_a_delay_in_each_phase_is_found_there(config: Make):
    fetch = line_of("ids, targets = next(stream)")
    span = {"file": str(TRAIN), "phase": "data", "first_line": fetch, "last_line": fetch}
    sleep = ",".join(f"{phase}={seconds}" for phase, seconds in PLANTED.items())
    profile = profiled(
        config, "--micro", "8", "--sleep", sleep + ",loss=0.03", spans=(span,), window_steps=6
    )
    found = phases(profile)
    planted = {**PLANTED, "forward": 0.06, "communication": 0.0}
    for phase, seconds in planted.items():
        assert found[phase] >= 0.95 * seconds, phase
    assert sum(found.values()) < 1.0
    slow = [c for c in profile.lines if c.line == line_of("time.sleep(naps[phase])")]
    assert {c.phase for c in slow} == set(PLANTED)


def test_exposed_reduction_is_communication_and_a_loader_is_data_without_spans(config: Make):
    sleep = ("--sleep", "communication=0.08,loader=0.01")
    arguments = ("--wrap", "ddp", "--micro", "4", "--loader", "0", *sleep)
    profile = profiled(config, *arguments, ranks=2, window_steps=8)
    assert profile.data_s >= 0.95 * 4 * 0.01
    assert profile.n_steps == 4
    assert profile.communication_s > 0.06
    assert profile.backward_s < 0.06


def flops(config: Make, *arguments: str) -> FlopCount:
    end = run_job(config(mode="preflight"), *arguments, TORCHDYNAMO_DISABLE="1")
    count = end.evidence[0].flops
    assert count is not None, end.output
    return count


def test_flops_of_a_step_are_those_of_its_matrices_however_attention_is_written(config: Make):
    tokens, dim, layers, vocab, seq = 128, 32, 2, 64, 16
    weights = layers * (3 * dim**2 + dim**2 + 2 * dim * 2 * dim) + dim * vocab
    attention = layers * 3 * 2 * 2 * tokens * seq * dim
    manual = flops(config)
    assert manual.total == 6 * tokens * weights + attention
    assert manual.attention == attention
    assert manual.by_dtype == {"float32": manual.total}
    fused = flops(config, "--sdpa", "--amp", "--micro", "8", "--backend", "aot_eager")
    assert (fused.total, fused.attention) == (manual.total, attention)
    assert fused.by_dtype == {"bfloat16": fused.total}
