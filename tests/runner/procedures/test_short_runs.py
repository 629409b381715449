"""Smoke runs and memory probes of real jobs: seconds, on a smaller job, with the right blame."""

from pathlib import Path

import pytest
from campaigns import TRAINING, Bench, make_bench, open_switched, switch

from infrarsi.knobs import Candidate, Setting
from infrarsi.trial import Completed, Crashed, OutOfMemory, ShortRun, Unstable
from infrarsi_runner.procedures.short_runs import ShortRuns

pytestmark = pytest.mark.live

MIB = 1 << 20
KNOBS = (
    switch("POISON", 0, 1),
    switch("WILD", 0, 1),
    switch("HOARD", 0, 600),
    switch("MICRO_BATCH", 4, 16),
)
ONLY_WHOLE = TRAINING.replace(
    "generator =", 'if SEQ_LEN < 64:\n    raise IndexError("too short")\ngenerator ='
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return make_bench(tmp_path_factory.mktemp("short"), memory_limit_bytes=400 * MIB)


def smoke(bench: Bench, key: str, setting: Setting) -> ShortRun:
    with bench.context() as context:
        run = ShortRuns(context, open_switched(context, *KNOBS)).smoke(
            key, Candidate(setting=setting)
        )
    assert run is not None
    return run


def test_a_smoke_run_is_made_once_on_a_smaller_job(bench: Bench) -> None:
    run = smoke(bench, "fine", {"micro_batch": 16})
    assert isinstance(run.outcome, Completed)
    assert not run.failed
    assert not run.tells_memory
    assert run.smaller == {"seq_len": 16}
    assert 0 < run.wall_s < 60
    n_runs = len(bench.runs())
    assert smoke(bench, "fine", {"micro_batch": 16}) == run
    assert len(bench.runs()) == n_runs


def test_a_candidate_that_crashes_fails_with_its_cause(bench: Bench) -> None:
    run = smoke(bench, "poisoned", {"poison": 1})
    assert run.failed
    assert isinstance(run.outcome, Crashed)
    assert "poisoned" in run.outcome.cause
    assert run.smaller == {"seq_len": 16, "global_batch": 8}


def test_losses_that_are_not_numbers_fail_a_smoke_run(bench: Bench) -> None:
    run = smoke(bench, "wild", {"wild": 1})
    assert run.failed
    assert isinstance(run.outcome, Unstable)


def test_a_memory_probe_sees_the_real_jobs_peak_or_that_it_does_not_fit(bench: Bench) -> None:
    with bench.context() as context:
        runs = ShortRuns(context, open_switched(context, *KNOBS))
        fits = runs.memory_probe("fits", Candidate(setting={}))
        hoards = runs.memory_probe("hoards", Candidate(setting={"hoard": 600}))
    assert fits is not None
    assert fits.tells_memory
    assert hoards is not None
    assert hoards.failed
    assert isinstance(hoards.outcome, OutOfMemory)
    assert isinstance(fits.outcome, Completed)
    assert fits.outcome.peak_mem_bytes < hoards.outcome.at_least_bytes


def test_a_job_that_cannot_be_smaller_is_run_as_it_is(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, ONLY_WHOLE)
    fine = smoke(bench, "fine", {"micro_batch": 16})
    assert isinstance(fine.outcome, Completed)
    assert fine.smaller == {}
    assert fine.tells_memory
    assert [name for name in bench.runs() if "baseline" in name] == ["smoke-baseline"]


def test_what_cannot_be_built_is_left_to_the_trial(bench: Bench) -> None:
    with bench.context() as context:
        job = open_switched(context, switch("NOT_THERE", 0, 1))
        run = ShortRuns(context, job).smoke("gone", Candidate(setting={"not_there": 1}))
    assert run is None
