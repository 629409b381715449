"""The simulator that judges the search: facts that must hold whatever its numbers are."""

from typing import Any

import numpy as np
import pytest
from search.claims import make_claims
from search.mixtures import all_workloads
from search.optima import optimum
from search.recorded import tables
from search.workload import Workload

NAMES = list(all_workloads())
MIXTURE = all_workloads()["moe-64e-64gpu"]
NODE = all_workloads()["dense-7b-8gpu"]
PIPELINE = all_workloads()["dense-13b-32gpu"]


@pytest.fixture(params=NAMES)
def workload(request: pytest.FixtureRequest) -> Workload:
    return all_workloads()[request.param]


def test_a_trial_is_the_same_for_the_same_seed(workload: Workload) -> None:
    setting = workload.sample(np.random.default_rng(3))
    again = workload.sample(np.random.default_rng(3))
    assert setting == again
    outcomes = [workload.run(workload.baseline, np.random.default_rng(s)) for s in (1, 1, 2)]
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_the_baseline_runs_and_is_far_from_the_optimum(workload: Workload) -> None:
    assert workload.valid(workload.baseline) is None
    assert workload.fate(workload.baseline) == "ok"
    assert workload.true_time(workload.baseline) > 1.5 * optimum(workload.name)[1]


def test_every_sample_is_allowed_and_complete(workload: Workload) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        setting = workload.sample(rng)
        assert workload.valid(setting) is None
        assert set(setting) == set(workload.space["knobs"])


def test_random_draws_do_not_beat_the_kept_optimum(workload: Workload) -> None:
    setting, seconds = optimum(workload.name)
    assert workload.true_time(setting) == pytest.approx(seconds, rel=1e-9)
    rng = np.random.default_rng(5)
    assert min(workload.true_time(workload.sample(rng)) for _ in range(2500)) >= seconds


def test_changes_of_the_optimum_do_not_beat_it(workload: Workload) -> None:
    setting, seconds = optimum(workload.name)
    changed = [setting | {k.name: x} for k in workload.knobs for x in k.choices]
    allowed = [s for s in changed if workload.valid(s) is None]
    assert min(map(workload.true_time, allowed)) >= seconds * (1 - 1e-9)


def test_random_trials_fail_in_several_ways(workload: Workload) -> None:
    rng = np.random.default_rng(6)
    statuses = [workload.run(workload.sample(rng), rng)["status"] for _ in range(400)]
    assert statuses.count("ok") > 20
    assert statuses.count("oom") > 15
    assert len(set(statuses)) >= 4


def test_a_larger_micro_batch_holds_more(workload: Workload) -> None:
    rng, compared = np.random.default_rng(7), 0
    while compared < 20:
        small = workload.sample(rng)
        large = doubled(workload, small)
        config = workload.config(large)
        if workload.valid(large) is not None or config.accum < config["pp"]:
            continue
        compared += 1
        assert workload.true_step(large).peak_gib > 0.99 * workload.true_step(small).peak_gib


def doubled(workload: Workload, setting: dict[str, Any]) -> dict[str, Any]:
    """The setting with the next micro-batch, and half the accumulation where that is a knob."""
    knob = workload.knob_of["mbs"]
    place = min(knob.choices.index(setting[knob.name]) + 1, len(knob.choices) - 1)
    changed = setting | {knob.name: knob.choices[place]}
    if "accum" in workload.knob_of:
        accum = workload.knob_of["accum"]
        changed[accum.name] = max(1, setting[accum.name] // 2)
    return changed


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_sharding_more_holds_less(stage: int) -> None:
    spelled = ("ddp", "zero1", "shard_grad_op", "full_shard")
    held = [
        NODE.true_step(NODE.baseline | {"sharding": spelled[s]}).peak_gib
        for s in (stage - 1, stage)
    ]
    assert held[1] < held[0]


def test_recomputing_holds_less_and_takes_longer() -> None:
    steps = [NODE.true_step(NODE.baseline | {"act_ckpt": c}) for c in ("none", "selective", "full")]
    assert steps[0].peak_gib > steps[1].peak_gib > steps[2].peak_gib
    assert steps[0].seconds < steps[2].seconds


def test_a_switch_that_does_not_act_changes_nothing() -> None:
    alone = NODE.baseline | {"tp": 1, "async_tp": False}
    assert NODE.true_step(alone) == NODE.true_step(alone | {"async_tp": True})


@pytest.mark.parametrize(
    ("workload", "change", "words"),
    [
        (NODE, {"dp": 4}, "multiply"),
        (NODE, {"grad_accum": 8}, "accumulation"),
        (PIPELINE, {"virtual_pipeline": 2}, "virtual stages"),
        (PIPELINE, {"tensor_model_parallel_size": 1, "sequence_parallel": True}, "sequence"),
        (PIPELINE, {"pipeline_model_parallel_size": 4, "virtual_pipeline": 4}, "layers"),
        (MIXTURE, {"tp_size": 8}, "heads"),
        (MIXTURE, {"tp_size": 4, "expert_parallel": 32}, "expert"),
    ],
)
def test_the_static_check_says_why(workload: Workload, change: dict[str, Any], words: str) -> None:
    reason = workload.valid(workload.baseline | change)
    assert reason is not None
    assert words in reason


def test_out_of_memory_tells_a_lower_bound_in_most_cases(workload: Workload) -> None:
    rng, told = np.random.default_rng(8), []
    while len(told) < 40:
        setting = workload.sample(rng)
        outcome = workload.run(setting, rng)
        if outcome["status"] == "oom":
            told.append(outcome.get("mem_at_least_gib"))
            if told[-1] is not None:
                assert told[-1] <= 1.02 * workload.true_step(setting).peak_gib
    assert 0.4 < sum(t is not None for t in told) / len(told) < 1.0


def test_flipped_claims_are_the_same_with_the_sign_turned() -> None:
    true, flipped = make_claims(NODE, 1), make_claims(NODE, 1, flipped=True)
    assert [c["log_speedup"] for c in true] == [-c["log_speedup"] for c in flipped]
    assert len(true) > 20


def test_recorded_tables_allow_only_what_was_recorded() -> None:
    found = tables()
    assert len(found) == 19
    for table in found:
        assert table.valid(table.baseline(0)) is None
        assert table.rows[table.place(table.baseline(0))].seconds > 1.05 * table.best
    assert found[0].valid(found[0].baseline(0) | {"tp": 3}) == "not recorded"
