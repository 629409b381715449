"""Finalists: the fastest by anchored readings, pruned of what hurts and of nothing else."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from campaigns import Bench, make_bench, open_switched, switch
from hypothesis import given, settings
from hypothesis import strategies as st
from journey import TINY_JOB

from infrarsi.contract.catalogue import violation
from infrarsi.knobs import Candidate, Setting
from infrarsi.trial import Completed, Outcome, Rejected, Trial
from infrarsi_runner.procedures.finalists import (
    Chosen,
    FrozenBundle,
    Tried,
    choose_finalists,
    next_finalist,
)
from infrarsi_runner.procedures.job import Job, open_job

NOISE = 0.01
KNOBS = tuple(switch(name, 0, 1) for name in ("A", "B", "C"))


class Effects:
    """A searcher that knows what each change adds to the natural log of the step time."""

    def __init__(self, effects: Mapping[str, float]) -> None:
        self.effects = effects

    def predict(self, settings: list[Setting]) -> list[dict[str, Any]]:
        logs = [sum(self.effects.get(k, 0.0) for k, v in s.items() if v) for s in settings]
        return [{"step_time_s": {"value": math.exp(log)}} for log in logs]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    bench: Bench = make_bench(tmp_path_factory.mktemp("finalists"))
    with bench.context() as context:
        return open_switched(context, *KNOBS)


def trial(number: int, step_s: float | Outcome, *names: str, anchored_s: float | None = None):
    outcome = (
        Completed(step_time_s=step_s, peak_mem_bytes=1) if isinstance(step_s, float) else step_s
    )
    setting = {"a": 0, "b": 0, "c": 0} | dict.fromkeys(names, 1)
    return Trial(
        number=number,
        candidate=Candidate(setting=setting),
        outcome=outcome,
        anchored_step_time_s=anchored_s,
    )


def chosen(job: Job, effects: Mapping[str, float], *trials: Trial) -> tuple[FrozenBundle, ...]:
    found = choose_finalists(job, [trial(0, 1.0), *trials], Effects(effects), noise_sd=NOISE)
    return found.finalists


def test_a_part_that_slows_the_bundle_is_dropped(job: Job) -> None:
    [bundle] = chosen(job, {"a": -0.5, "b": 0.1}, trial(1, 0.7, "a", "b"))
    assert bundle.pruned == ("b",)
    assert bundle.candidate.changed(job.space) == {"a": 1}


def test_parts_the_noise_cannot_resolve_stay_grouped(job: Job) -> None:
    [bundle] = chosen(job, {"a": -0.5, "b": 0.5 * NOISE, "c": -0.5 * NOISE}, trial(1, 0.6, *"abc"))
    assert bundle.pruned == ()


def test_a_part_that_does_nothing_is_dropped(job: Job) -> None:
    [bundle] = chosen(job, {"a": -0.5}, trial(1, 0.6, "a", "b"))
    assert bundle.pruned == ("b",)


def test_the_anchored_reading_decides_not_the_raw_one(job: Job) -> None:
    effects = {"a": -0.1, "b": -0.2}
    found = chosen(
        job,
        effects,
        trial(1, 0.80, "a", anchored_s=0.95),
        trial(2, 0.90, "b", anchored_s=0.82),
        trial(3, 0.99, "a", "b", anchored_s=1.02),
    )
    assert [bundle.trial for bundle in found] == [2, 1]


def test_what_failed_or_was_rejected_is_no_finalist(job: Job) -> None:
    rejected = Rejected(violations=(violation("W101", "8 rows became 4."),))
    assert chosen(job, {"a": -1.0}, trial(1, rejected, "a"), trial(2, 1.2, "b")) == ()


def test_bundles_that_prune_to_the_same_are_confirmed_once(job: Job) -> None:
    found = chosen(job, {"a": -0.5, "b": 0.2}, trial(1, 0.6, "a"), trial(2, 0.7, "a", "b"))
    assert [bundle.trial for bundle in found] == [1]


def test_a_bundle_of_which_nothing_is_left_is_no_finalist(job: Job) -> None:
    assert chosen(job, {"a": 0.3}, trial(1, 0.9, "a")) == ()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0.3, 1.3), st.sets(st.sampled_from("abc"), min_size=1))))
def test_at_most_three_go_to_confirmation(job: Job, readings: list[tuple[float, set[str]]]) -> None:
    trials = [trial(n, time, *sorted(names)) for n, (time, names) in enumerate(readings, 1)]
    found = chosen(job, {"a": -0.1, "b": -0.2, "c": -0.3}, *trials)
    assert len(found) <= 3
    assert len({str(bundle.candidate.setting) for bundle in found}) == len(found)


def confirmations(job: Job, chosen: Chosen, guilty: set[str], most: int = 3) -> list[str]:
    """Names of what is confirmed where the judge rejects whatever has all of the guilty parts."""
    tried: list[Tried] = []
    while bundle := next_finalist(chosen, job.space, tried, most):
        is_guilty = guilty <= bundle.candidate.changed(job.space).keys()
        verdict = "rejected" if is_guilty else "accepted"
        tried.append(Tried(bundle=bundle, verdict=verdict, codes=("W101",)))
        if not is_guilty:
            break
    return [one.bundle.name for one in tried]


def all_chosen(job: Job, effects: Mapping[str, float], *trials: Trial) -> Chosen:
    return choose_finalists(job, [trial(0, 1.0), *trials], Effects(effects), noise_sd=NOISE)


def test_what_holds_a_rejected_bundle_is_passed_over(job: Job) -> None:
    found = all_chosen(
        job,
        {"a": -0.3, "b": -0.2, "c": -0.1},
        trial(1, 0.60, "a", "b"),
        trial(2, 0.61, "a", "b", "c"),
        trial(3, 0.80, "b", "c"),
    )
    assert confirmations(job, found, {"a", "b"}) == ["trial-1", "trial-3"]


def test_a_rejected_bundle_is_tried_again_without_its_least_useful_part(job: Job) -> None:
    found = all_chosen(job, {"a": -0.3, "b": -0.2, "c": -0.1}, trial(1, 0.55, *"abc"))
    assert confirmations(job, found, {"c"}) == ["trial-1", "trial-1-without-c"]
    assert confirmations(job, found, {"b"}) == ["trial-1", "trial-1-without-c", "trial-1-without-b"]
    assert confirmations(job, found, {"a"}, most=2) == ["trial-1", "trial-1-without-c"]


def test_without_a_rejection_only_measured_bundles_are_confirmed(job: Job) -> None:
    found = all_chosen(job, {"a": -0.3, "b": -0.2}, trial(1, 0.6, "a", "b"))
    [first] = found.finalists
    assert next_finalist(found, job.space, [Tried(bundle=first, verdict="not_resolved")], 3) is None


def test_a_single_part_that_is_rejected_has_no_fallback(job: Job) -> None:
    found = all_chosen(job, {"a": -0.3}, trial(1, 0.7, "a"))
    assert confirmations(job, found, {"a"}) == ["trial-1"]


def test_a_bundle_in_the_jobs_own_precision_follows_one_whose_numerics_were_rejected(
    tmp_path: Path,
) -> None:
    bench = make_bench(tmp_path, TINY_JOB.read_text())
    with bench.context() as context:
        job = open_job(context, context.request.lock, context.request.source)
    setting = {"micro_batch": 32, "sdpa": True, "bf16_autocast": True}
    effects = {"sdpa": -0.1, "bf16_autocast": -0.5}
    reading = Completed(step_time_s=0.4, peak_mem_bytes=1)
    found = choose_finalists(
        job,
        [
            trial(0, 1.0).model_copy(update={"candidate": job.baseline_candidate()}),
            Trial(number=1, candidate=Candidate(setting=setting), outcome=reading),
        ],
        Effects(effects | {"micro_batch": -0.2}),
        noise_sd=NOISE,
    )
    [whole] = found.finalists
    assert not whole.keeps_precision
    for codes, name in (
        (("L208",), "trial-1-without-bf16_autocast"),
        (("S405",), "trial-1-without-sdpa"),
    ):
        rejected = Tried(bundle=whole, verdict="rejected", codes=codes)
        following = next_finalist(found, job.space, [rejected], 3)
        assert following is not None
        assert following.name == name


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sets(st.sampled_from("abc"), min_size=1), max_size=5),
    st.sets(st.sampled_from("abc"), min_size=1),
)
def test_no_bundle_is_confirmed_twice_nor_more_than_three(
    job: Job, bundles: list[set[str]], guilty: set[str]
) -> None:
    trials = [trial(n, 0.5 + 0.01 * n, *sorted(names)) for n, names in enumerate(bundles, 1)]
    names = confirmations(job, all_chosen(job, {"a": -0.3, "b": -0.2, "c": -0.1}, *trials), guilty)
    assert len(names) == len(set(names)) <= 3
