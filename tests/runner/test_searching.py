"""What the searcher is told: anchored times, bare facts from short runs, compile errors apart."""

import pytest

from infrarsi.contract.catalogue import violation
from infrarsi.knobs import Candidate, Knob, Space
from infrarsi.patches import RECIPES
from infrarsi.trial import (
    Completed,
    Crashed,
    Outcome,
    OutOfMemory,
    Rejected,
    ShortRun,
    TimedOut,
    Trial,
    Unstable,
)
from infrarsi.units import GIB
from infrarsi_runner.searching import (
    SearchChild,
    is_compile_error,
    told,
    told_of_short_run,
    told_of_trial,
)

RAN = Completed(step_time_s=2.0, peak_mem_bytes=3 * GIB)
SPACE = Space(
    knobs=(
        Knob(name="rows", type="ordinal", choices=(1, 2, 4), default=1, role="micro_batch"),
        Knob(
            name="sdpa", type="bool", choices=(False, True), kind="patch", default=False, role="p"
        ),
    )
)


def short(outcome: Outcome, **changes: object) -> ShortRun:
    run = ShortRun(kind="smoke", candidate=Candidate(), outcome=outcome)
    return run.model_copy(update=changes)


def test_a_trial_is_told_with_its_anchored_time() -> None:
    trial = Trial(
        number=1, candidate=Candidate(), outcome=RAN, anchored_step_time_s=1.5, wall_s=20.0
    )
    assert told_of_trial(trial) == {
        "status": "ok",
        "step_time_s": 1.5,
        "peak_mem_gib": 3.0,
        "cost_s": 20.0,
    }


def test_a_trial_without_outcome_tells_nothing() -> None:
    assert told_of_trial(Trial(number=1, candidate=Candidate())) is None


def test_a_short_run_never_tells_a_speed() -> None:
    outcomes = [
        RAN,
        Unstable(step=1, step_time_s=2.0),
        Crashed(cause="x"),
        OutOfMemory(at_least_bytes=GIB),
        TimedOut(limit_s=1.0),
    ]
    heard = [told_of_short_run(short(outcome)) or {} for outcome in outcomes]
    assert all("step_time_s" not in said for said in heard)
    assert [said.get("status") for said in heard] == ["ok", "nan", "crashed", "oom", None]


def test_only_the_real_job_tells_its_peak() -> None:
    assert told_of_short_run(short(RAN)) == {"status": "ok", "peak_mem_gib": 3.0}
    assert told_of_short_run(short(RAN, smaller={"seq_len": 16})) == {"status": "ok"}


def test_a_rejection_is_told_with_its_code_and_without_speed() -> None:
    outcome = Rejected(violations=(violation("S405", "It writes elsewhere."),))
    trial = Trial(number=1, candidate=Candidate(), outcome=outcome, wall_s=3.0)
    assert told_of_trial(trial) == {"status": "rejected", "code": "S405", "cost_s": 3.0}


def test_an_unstable_trial_keeps_its_time() -> None:
    assert told(Unstable(step=3, step_time_s=2.5)) == {"status": "nan", "step_time_s": 2.5}
    assert told(Unstable(step=3)) == {"status": "nan"}


@pytest.mark.parametrize(
    ("cause", "compiler"),
    [
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised", True),
        ("torch._inductor.exc.InductorError: CppCompileError: C++ compile error", True),
        ("triton.compiler.errors.CompilationError: at 3:4", True),
        ("RuntimeError: shapes cannot be multiplied (4x5 and 6x7)", False),
        ("KeyError: 'no such shard'", False),
    ],
)
def test_a_compilers_failure_is_told_apart(cause: str, compiler: bool) -> None:
    assert is_compile_error(cause) is compiler
    assert told(Crashed(cause=cause)) == {"status": "compile_error" if compiler else "crashed"}


def test_a_smoke_run_clears_its_pair_and_leaves_the_trial_to_be_asked_for() -> None:
    with SearchChild(SPACE, RECIPES, {}, 0) as child:
        child.tell(SPACE.default_setting(), told(RAN))
        both = {"rows": 4, "sdpa": True}
        assert both in child.suspects(both)
        child.tell(both, {"status": "ok"})
        assert child.suspects(both) == []
        assert child.suspects({"rows": 2, "sdpa": True}) != []
        asked = [child.ask() for _ in range(5)]
    assert both in asked


def test_what_failed_its_smoke_run_is_not_asked_for() -> None:
    with SearchChild(SPACE, RECIPES, {}, 0) as child:
        child.tell(SPACE.default_setting(), told(RAN))
        child.tell({"rows": 4, "sdpa": True}, {"status": "crashed"})
        asked = []
        while (setting := child.ask()) is not None:
            asked.append(setting)
    assert {"rows": 4, "sdpa": True} not in asked


def test_a_search_that_starts_again_has_forgotten() -> None:
    with SearchChild(SPACE, RECIPES, {}, 0) as child:
        child.tell(SPACE.default_setting(), told(RAN))
        first = child.predict([{"rows": 2}])
        child.tell({"rows": 2}, {"status": "ok", "step_time_s": 0.5})
        assert child.predict([{"rows": 2}]) != first
        child.start_again(noise_frac=0.01)
        child.tell(SPACE.default_setting(), told(RAN))
        again = child.predict([{"rows": 2}])
    assert again[0]["step_time_s"]["value"] == pytest.approx(
        first[0]["step_time_s"]["value"], rel=0.05
    )
