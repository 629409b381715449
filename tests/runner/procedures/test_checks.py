"""When a candidate is looked at before its trial, and who is to blame where it fails."""

from pathlib import Path

import pytest
from campaigns import calibration_of, make_bench, open_switched, switch

from infrarsi.knobs import Candidate
from infrarsi.trial import Expected, OutOfMemory, TurnedAway
from infrarsi_runner.procedures.checks import Checks, Passed, needs_smoke
from infrarsi_runner.procedures.searched import Search

MIB = 1 << 20
PATCHES = ("sdpa",)
UNSURE = Expected(predicted_p_fit=0.5)


@pytest.mark.parametrize(
    ("suspects", "needed"),
    [
        ([], False),
        ([{"rows": 4}], False),
        ([{"rows": 4}, {"sdpa": True}], True),
        ([{"rows": 4, "threads": 2}], True),
    ],
)
def test_patches_and_pairs_that_never_ran_are_smoke_tested(
    suspects: list[dict[str, object]], needed: bool
) -> None:
    assert needs_smoke(suspects, PATCHES) is needed  # type: ignore[arg-type]


@pytest.mark.live
def test_memory_is_probed_only_where_a_known_limit_makes_it_uncertain(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, memory_limit_bytes=400 * MIB)
    with bench.context() as context:
        job = open_switched(context, switch("HOARD", 0, 600))
        calibration = calibration_of(
            job, 0.02, 300 * MIB, base_mem_bytes=(200 * MIB,), mem_limit_bytes=400 * MIB
        )
        candidate = Candidate(setting={"hoard": 600})
        with Search(job, calibration, seed=0) as search:
            unlimited = Checks(context, job, search, knows_limit=False)
            assert unlimited.check("one", 1, candidate, UNSURE) == Passed()
            limited = Checks(context, job, search, knows_limit=True)
            sure = Expected(predicted_p_fit=0.99)
            assert limited.check("two", 1, candidate, sure) == Passed()
            assert bench.runs() == []
            [before] = search.child.predict([candidate.setting])
            away = limited.check("three", 1, candidate, UNSURE)
            [after] = search.child.predict([candidate.setting])
    assert isinstance(away, TurnedAway)
    assert isinstance(away.outcome, OutOfMemory)
    assert [run.kind for run in away.short_runs] == ["memory_probe"]
    assert away.blamed == {}
    assert after["p_fit"] < before["p_fit"]


@pytest.mark.live
def test_a_change_that_fails_alone_takes_the_blame_for_the_whole(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    with bench.context() as context:
        job = open_switched(context, switch("POISON", 0, 1), switch("MICRO_BATCH", 4, 16))
        with Search(job, calibration_of(job, 0.02, 300 * MIB), seed=0) as search:
            whole = Candidate(setting={"poison": 1, "micro_batch": 16})
            search.child.tell({"poison": 0, "micro_batch": 16}, {"status": "ok"})
            checks = Checks(context, job, search, knows_limit=False)
            away = checks.check("one", 1, whole, Expected())
            suspicious, innocent = search.child.predict([{"poison": 1}, {"micro_batch": 16}])
    assert isinstance(away, TurnedAway)
    assert away.blamed == {"poison": 1}
    assert suspicious["p_valid"] < innocent["p_valid"]
