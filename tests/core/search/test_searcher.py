import numpy as np
import pytest
from toy_cluster import BASELINE, CLAIMS, SPACE, ToyCluster, all_settings

from infrarsi.errors import UsageError
from infrarsi.search import Searcher

OK = {"status": "ok", "step_time_s": 1.0, "peak_mem_gib": 1.0}


def run_campaign(seed, n_trials=10, breaks=None, claims=CLAIMS):
    cluster = ToyCluster(seed, breaks)
    job = {"capacity_gib": cluster.capacity_gib, "base_mem_gib": 0.2}
    searcher = Searcher(SPACE, claims=claims, seed=seed, job=job)
    statuses = []
    for _ in range(n_trials):
        setting = searcher.ask()
        outcome = cluster.outcome(setting)
        statuses.append(outcome["status"])
        searcher.tell(setting, outcome)
    return cluster, searcher, statuses


def random_regret(seed, n_trials=10):
    cluster = ToyCluster(seed)
    settings = all_settings()
    picked = np.random.default_rng(seed).permutation(len(settings))[: n_trials - 1]
    return min(cluster.regret(s) for s in [BASELINE, *(settings[i] for i in picked)])


def key(setting):
    return tuple(sorted(setting.items()))


def test_ten_trials_come_within_a_few_percent_of_the_best_and_beat_chance():
    seeds = range(20)
    found = [cluster.regret(s.best()) for cluster, s, _ in map(run_campaign, seeds)]
    assert np.median(found) < 0.03
    assert np.quantile(found, 0.9) < 0.12
    assert np.mean(found) < 0.5 * np.mean([random_regret(seed) for seed in seeds])


def test_without_claims_it_still_comes_close():
    found = [c.regret(s.best()) for c, s, _ in (run_campaign(i, claims=()) for i in range(12))]
    assert np.median(found) < 0.05


def test_a_patch_that_breaks_is_found_out_and_left_alone():
    _, searcher, statuses = run_campaign(3, n_trials=14, breaks="sync")
    assert statuses.count("crashed") <= 4
    with_it, without = searcher.predict([{"sync": True}, {"sdpa": True}])
    assert with_it["p_valid"] < 0.3
    assert without["p_valid"] > 0.9


def test_the_first_ask_is_the_users_own_start():
    assert Searcher(SPACE, claims=CLAIMS).ask() == BASELINE


def test_the_start_takes_what_is_claimed_and_never_moves_from_one_setting_only():
    searcher = Searcher(SPACE, claims=CLAIMS)
    searcher.tell(BASELINE, OK)
    asked = [searcher.ask() for _ in range(4)]
    assert asked[0]["bf16"]
    assert asked[0]["sdpa"]
    far = max(sum(a[k] != b[k] for k in a) for a in asked for b in asked)
    assert far >= 2


def test_the_same_seed_and_tells_give_the_same_asks():
    asked = []
    for _ in range(2):
        cluster, searcher = ToyCluster(4), Searcher(SPACE, claims=CLAIMS, seed=9)
        settings = []
        for _ in range(8):
            settings.append(searcher.ask())
            searcher.tell(settings[-1], cluster.outcome(settings[-1]))
        asked.append(settings)
    assert asked[0] == asked[1]


def test_asks_before_tells_differ():
    searcher = Searcher(SPACE, claims=CLAIMS)
    searcher.tell(BASELINE, OK)
    asked = [key(searcher.ask()) for _ in range(12)]
    assert len(set(asked)) == 12
    assert key(BASELINE) not in asked


def test_every_setting_is_asked_once_and_then_it_says_so():
    space = {"knobs": {"a": {"type": "bool", "kind": "patch"}, "n": {"choices": [1, 2, 3]}}}
    searcher = Searcher(space)
    asked = set()
    for _ in range(6):
        assert not searcher.exhausted()
        asked.add(key(searcher.ask()))
    assert len(asked) == 6
    assert searcher.exhausted()
    with pytest.raises(UsageError, match="Every allowed setting was tried"):
        searcher.ask()


def test_a_space_without_knobs_asks_for_the_baseline_once():
    searcher = Searcher({"knobs": {}}, job={"capacity_gib": 2.0})
    assert searcher.ask() == {}
    searcher.tell({}, OK)
    assert searcher.exhausted()
    (predicted,) = searcher.predict([{}])
    assert predicted["step_time_s"]["value"] == pytest.approx(1.0, rel=0.01)
    assert predicted["peak_mem_gib"]["value"] == pytest.approx(1.0, rel=0.05)
    assert searcher.best() == {}


def large_space():
    knob = {"type": "ordinal", "choices": [1, 2, 4, 8], "default": 1}
    return {"knobs": {f"k{i}": knob for i in range(8)}}


def two_is_needed(setting):
    return None if setting["k0"] == 2 else "k0 must be 2"


@pytest.mark.parametrize("valid", [None, two_is_needed])
@pytest.mark.parametrize("seed", range(4))
def test_a_searcher_only_told_the_trials_asks_the_same_next_setting(seed, valid):
    asking = Searcher(large_space(), valid=valid, seed=seed)
    trials = []
    for n in range(9):
        told_only = Searcher(large_space(), valid=valid, seed=seed)
        for setting, outcome in trials:
            told_only.tell(setting, outcome)
        setting = asking.ask()
        assert told_only.ask() == setting, n
        time_s = 1.0 + 0.1 * (sum(setting.values()) % 5)
        trials.append((setting, {"status": "ok", "step_time_s": time_s}))
        asking.tell(*trials[-1])


def test_asking_whether_it_is_exhausted_changes_nothing():
    searchers = [Searcher(large_space(), seed=5) for _ in range(2)]
    for _ in range(7):
        searchers[1].exhausted()
        first, second = (s.ask() for s in searchers)
        assert first == second
        for searcher in searchers:
            searcher.tell(first, OK)


def test_what_is_not_allowed_is_never_asked():
    def valid(setting):
        return "sdpa needs bf16" if setting["sdpa"] and not setting["bf16"] else None

    searcher = Searcher(SPACE, valid=valid, claims=CLAIMS)
    for _ in range(20):
        setting = searcher.ask()
        assert valid(setting) is None
        searcher.tell(setting, OK)


def test_a_start_that_is_not_allowed_is_replaced_by_a_sample():
    def sample(rng):
        return {"threads": 2, "micro_batch": int(rng.choice([1, 2]))}

    searcher = Searcher(
        SPACE, valid=lambda s: None if s["threads"] == 2 else "two threads", sample=sample
    )
    assert searcher.ask()["threads"] == 2
    assert searcher.ask()["threads"] == 2


def test_a_baseline_told_first_becomes_the_start_where_the_space_names_none():
    space = {"knobs": {"n": {"type": "ordinal", "choices": [1, 2, 4]}, "b": {"type": "bool"}}}
    searcher = Searcher(space)
    searcher.tell({"n": 4, "b": True}, OK)
    changes = {(p["knob"], p["value"]) for p in searcher.prices()}
    assert changes == {("n", 1), ("n", 2), ("b", False)}


def test_a_rejected_trial_teaches_neither_speed_nor_memory():
    searcher = Searcher(SPACE, claims=CLAIMS)
    searcher.tell(BASELINE, OK)
    query = [{"bf16": True}, {"threads": 2}]
    before = searcher.predict([query[1]])
    cheat = {**BASELINE, "threads": 2}
    outcome = {"status": "rejected", "step_time_s": 0.01, "peak_mem_gib": 0.01}
    searcher.tell(cheat, outcome)
    after = searcher.predict([query[1]])
    assert after[0]["step_time_s"] == before[0]["step_time_s"]
    assert after[0]["peak_mem_gib"] == before[0]["peak_mem_gib"]
    assert after[0]["p_valid"] < before[0]["p_valid"]
    assert searcher.best() == BASELINE


def test_a_rejection_counts_against_all_claims_of_its_source():
    claims = [{**c, "source": "agent"} for c in CLAIMS]
    searcher = Searcher(SPACE, claims=claims)
    searcher.tell(BASELINE, OK)
    (before,) = searcher.predict([{"bf16": True}])
    searcher.tell({**BASELINE, "sdpa": True}, {"status": "rejected"})
    (after,) = searcher.predict([{"bf16": True}])
    assert before["step_time_s"]["value"] < after["step_time_s"]["value"] < 1.0


def test_a_rejected_bundle_does_not_count_against_what_an_accepted_trial_carried():
    def gain_of_bf16(*trials):
        searcher = Searcher(SPACE, claims=CLAIMS)
        for setting, outcome in trials:
            searcher.tell(setting, outcome)
        return searcher.predict([{"bf16": True}])[0]["step_time_s"]

    accepted = [(BASELINE, OK), ({"bf16": True}, {"status": "ok", "step_time_s": 0.8})]
    bundle = ({"bf16": True, "sdpa": True}, {"status": "rejected"})
    assert gain_of_bf16(*accepted, bundle) == gain_of_bf16(*accepted)
    assert gain_of_bf16(accepted[0], bundle) != gain_of_bf16(accepted[0])


S405 = {"status": "rejected", "code": "S405"}


def ask_all(searcher):
    asked = []
    while not searcher.exhausted():
        asked.append(searcher.ask())
    return asked


def small_space(*patches):
    knobs = {name: {"type": "bool", "kind": "patch"} for name in patches}
    return {"knobs": {**knobs, "n": {"choices": [1, 2, 4]}}}


@pytest.mark.parametrize("sampled", [False, True])
def test_a_source_of_an_s_violation_is_out(sampled):
    space = small_space("honest", "cheat", "other")

    def sample(rng):
        return {"cheat": bool(rng.random() < 0.9), "n": int(rng.choice([1, 2, 4]))}

    searcher = Searcher(space, sample=sample if sampled else None)
    searcher.tell({}, OK)
    searcher.tell({"honest": True}, OK)
    searcher.tell({"honest": True, "cheat": True, "n": 2}, S405)
    asked = ask_all(searcher)
    assert not any(s["cheat"] for s in asked)
    assert len(asked) == 12 - 2


def test_after_an_s_violation_what_only_crashed_or_was_rejected_is_out_too():
    searcher = Searcher(small_space("one", "two", "free"))
    searcher.tell({}, OK)
    searcher.tell({"one": True}, {"status": "crashed"})
    searcher.tell({"one": True, "two": True}, S405)
    asked = ask_all(searcher)
    assert not any(s["one"] or s["two"] for s in asked)
    assert any(s["free"] for s in asked)


@pytest.mark.parametrize("outcome", [{"status": "rejected", "code": "L201"}, {"status": "nan"}])
def test_only_an_s_violation_takes_patches_out(outcome):
    searcher = Searcher(small_space("a"))
    searcher.tell({}, OK)
    searcher.tell({"a": True}, outcome)
    assert any(s["a"] for s in ask_all(searcher))


def test_out_of_memory_is_a_bound_and_no_break():
    searcher = Searcher(SPACE, job={"capacity_gib": 2.0})
    searcher.tell(BASELINE, OK)
    (before,) = searcher.predict([{"micro_batch": 8}])
    searcher.tell({"micro_batch": 8}, {"status": "oom", "mem_at_least_gib": 2.5})
    (after,) = searcher.predict([{"micro_batch": 8}])
    assert after["p_fit"] == 0
    assert after["peak_mem_gib"]["high"] > before["peak_mem_gib"]["high"]
    assert after["p_valid"] == before["p_valid"]


def test_a_trial_with_nan_keeps_its_time_but_is_never_the_best():
    searcher = Searcher(SPACE)
    searcher.tell(BASELINE, OK)
    searcher.tell({"bf16": True}, {"status": "nan", "step_time_s": 0.5})
    (predicted,) = searcher.predict([{"bf16": True}])
    assert predicted["step_time_s"]["value"] == pytest.approx(0.5, rel=0.1)
    assert searcher.best() == BASELINE


def test_nothing_told_means_nothing_known():
    searcher = Searcher(SPACE)
    (predicted,) = searcher.predict([BASELINE])
    assert predicted["step_time_s"] is None
    assert predicted["p_fit"] == 1.0
    assert searcher.best() is None
    assert searcher.predict([]) == []


def test_failures_alone_do_not_stop_the_search():
    searcher = Searcher(SPACE, claims=CLAIMS, job={"capacity_gib": 1.0})
    asked = []
    for status in ("crashed", "oom", "timeout", "compile_error", "nan", "rejected", "oom"):
        asked.append(key(searcher.ask()))
        searcher.tell(dict(asked[-1]), {"status": status})
    assert len(set(asked)) == len(asked)


def test_prices_say_what_a_value_costs_with_the_number_of_its_trials():
    cluster, searcher, _ = run_campaign(2, n_trials=16)
    prices = {(p["knob"], p["value"]): p for p in searcher.prices()}
    assert set(prices) == {
        ("threads", 2),
        *(("micro_batch", v) for v in (1, 4, 8)),
        *((p, True) for p in ("bf16", "sdpa", "fused", "sync")),
    }
    bf16 = prices["bf16", True]
    assert bf16["n_trials"] > 2
    truth = np.expm1(cluster.effects["bf16"])
    assert bf16["time_frac"]["low"] < truth < bf16["time_frac"]["high"]


def test_a_large_space_is_searched_without_listing_it():
    knobs = {f"k{i}": {"type": "ordinal", "choices": [1, 2, 4], "default": 1} for i in range(14)}
    searcher = Searcher({"knobs": knobs}, seed=1)
    times = []
    for _ in range(14):
        setting = searcher.ask()
        log = sum((-0.2 if i % 3 else 0.2) * np.log2(setting[f"k{i}"]) for i in range(14))
        times.append(float(np.exp(0.1 * log)))
        searcher.tell(setting, {"status": "ok", "step_time_s": times[-1]})
    assert min(times) < 0.9 * times[0]


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({}, "no knobs"),
        ({"knobs": {"a": {"type": "ordinal"}}}, "a has no choices"),
        ({"knobs": {"a": {"type": "odd", "choices": [1]}}}, "type 'odd'"),
        ({"knobs": {"a": {"choices": [1, 2], "default": 3}}}, "cannot be 3"),
        ({"knobs": {"a": {"choices": [[1], [2]]}}}, "no plain value"),
    ],
)
def test_a_space_that_cannot_be_used_is_refused_with_the_knob(space, words):
    with pytest.raises(UsageError, match=words):
        Searcher(space)


@pytest.mark.parametrize(
    "outcome",
    [
        {"status": "fine"},
        {"status": "ok", "step_time_s": 0.0},
        {"status": "ok", "step_time_s": float("nan")},
        {"status": "ok", "step_time_s": 1.0, "peak_mem_gib": -1},
        {"status": "rejected", "code": 405},
    ],
)
def test_an_outcome_that_cannot_be_is_refused(outcome):
    with pytest.raises(UsageError):
        Searcher(SPACE).tell(BASELINE, outcome)


def test_unknown_knobs_and_values_are_refused_and_unknown_claims_ignored():
    searcher = Searcher(SPACE, claims=[{"knob": "gone", "value": True, "log_speedup": 1.0}])
    with pytest.raises(UsageError, match="no knob 'speed'"):
        searcher.tell({"speed": 1}, OK)
    with pytest.raises(UsageError, match="micro_batch cannot be 3"):
        searcher.predict([{"micro_batch": 3}])
