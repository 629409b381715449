"""Real jobs with the probe in them: what a step's record holds, however the job is written."""

from collections.abc import Callable

import pytest
from probe_jobs import JOBS, JobEnd, run_job

from infrarsi.wire.probe import ProbeConfig, RankEvidence, StepRecord

pytestmark = pytest.mark.live
Make = Callable[..., ProbeConfig]


def clean(end: JobEnd, ranks: int = 1) -> tuple[RankEvidence, ...]:
    assert end.code == 0, end.output
    assert "the script has ended" not in end.output
    assert [e.rank for e in end.evidence] == list(range(ranks))
    for evidence in end.evidence:
        assert evidence.failure is None
        assert evidence.tampering == ()
        assert evidence.unsupported == ()
    return end.evidence


def data_of(step: StepRecord) -> tuple[object, ...]:
    return (step.rows, step.tokens, step.inputs_hash, step.targets_hash, step.positions_in_loss)


def test_a_plain_job_is_counted_step_by_step(reference: RankEvidence):
    assert [s.index for s in reference.steps] == [1, 2, 3]
    assert reference.root_module == "GPT"
    assert reference.n_threads == 1
    assert reference.optimizers[0].name == "AdamW"
    assert reference.overhead_steps == 3
    assert 0 < reference.base_rss_bytes <= reference.peak_rss_bytes
    for step in reference.steps:
        assert (step.micro_steps, step.rows, step.tokens, step.seq_len) == (4, 8, 128, 16)
        assert step.positions_in_loss == 128
        assert step.learning_rates == (0.01,)
        assert step.loss_dtype == "float32"
        assert step.autocast is None
        assert not step.skipped
        assert step.changed_samples
        assert len(step.losses) == 4
    assert len({s.inputs_hash for s in reference.steps}) == 3


def test_regrouped_rows_and_a_loss_in_the_script_hash_the_same(
    config: Make, reference: RankEvidence
):
    arguments = ("--micro", "8", "--loss", "script", "--fused", "--amp")
    step = clean(run_job(config(), *arguments))[0].steps
    assert [data_of(s) for s in step] == [data_of(s) for s in reference.steps]
    assert {(s.micro_steps, s.autocast) for s in step} == {(1, "bfloat16")}


def test_workers_and_several_optimizers_leave_the_rows_as_they_are(
    config: Make, reference: RankEvidence
):
    evidence = clean(run_job(config(), "--loader", "1", "--opt", "two"))[0]
    assert [data_of(s) for s in evidence.steps] == [data_of(s) for s in reference.steps]
    assert evidence.steps[0].learning_rates == (0.01, 0.005)


def test_a_seed_moves_the_rows_and_the_initial_weights(config: Make, reference: RankEvidence):
    evidence = clean(run_job(config(seed=5, window_steps=1)))[0]
    assert evidence.steps[0].inputs_hash != reference.steps[0].inputs_hash
    assert evidence.steps[0].losses != reference.steps[0].losses


def test_freshly_started_workers_are_not_disturbed(config: Make):
    evidence = clean(run_job(config(), script=JOBS / "spawned.py"))[0]
    assert [s.rows for s in evidence.steps] == [4, 4, 4]


def test_an_optimizer_inside_backward_makes_one_step_a_backward(config: Make):
    evidence = clean(run_job(config(), "--opt", "in_backward"))[0]
    assert [(s.micro_steps, s.rows) for s in evidence.steps] == [(1, 2)] * 3
    assert all(s.changed_samples for s in evidence.steps)


def test_a_step_skipped_by_the_scaler_is_a_step_marked_skipped(config: Make):
    evidence = clean(run_job(config(), "--scaler"))[0]
    assert [s.skipped for s in evidence.steps] == [False, True, False]
    assert [s.micro_steps for s in evidence.steps] == [4, 4, 4]


def test_compiled_code_stays_compiled_within_the_window(config: Make, reference: RankEvidence):
    arguments = ("--backend", "aot_eager", "--inplace")
    end = run_job(config(warmup_steps=2, window_steps=2), *arguments, TORCH_LOGS="recompiles")
    evidence = clean(end)[0]
    assert [data_of(s) for s in evidence.steps] == [data_of(s) for s in reference.steps[1:]]
    assert end.output.count("Recompiling function forward") <= 1
