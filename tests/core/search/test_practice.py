import pytest

from infrarsi.search import Searcher
from infrarsi.search.claims import read_claims
from infrarsi.search.practice import SOURCE, common_practice
from infrarsi.search.space import read_space

SWITCH = {"type": "bool", "default": False}


def practice(claims=(), **knobs):
    space = read_space({"knobs": knobs}, None)
    made = common_practice(space, read_claims(claims, space))
    return {(c.knob, c.value): c for c in made}


@pytest.mark.parametrize(
    ("name", "faster", "role"),
    [
        ("use_flash_attention", True, "saver"),
        ("torch_compile", True, "neutral"),
        ("gradient_checkpointing", False, "saver"),
        ("activation_recompute", False, "saver"),
        ("cpu_offload", False, "saver"),
        ("bf16", True, "saver"),
        ("use_cuda_graph", True, "hungry"),
        ("overlap_grad_reduce", True, "hungry"),
        ("empty_cache_every_step", False, "saver"),
        ("chunked_loss", True, "saver"),
    ],
)
def test_a_switch_is_expected_to_do_what_it_does_elsewhere(name, faster, role):
    claim = practice(**{name: SWITCH})[name, True]
    assert (claim.log_speedup > 0) is faster
    assert claim.memory_role == role
    assert claim.sd >= 0.01
    assert claim.source == SOURCE


def test_a_name_that_tells_nothing_gets_no_claim():
    assert practice(seed_everything=SWITCH, hidden_size={"choices": [512, 1024]}) == {}


def test_a_value_that_tells_nothing_gets_no_claim_beside_one_that_does():
    made = practice(attn_implementation={"choices": ["eager", "sdpa", "custom"]})
    assert set(made) == {("attn_implementation", "sdpa")}


def test_seen_from_the_other_side_gain_and_memory_are_turned():
    on = practice(recompute={"choices": ["none", "full"], "default": "none"})
    off = practice(recompute={"choices": ["none", "full"], "default": "full"})
    there, back = on["recompute", "full"], off["recompute", "none"]
    assert there.log_speedup == pytest.approx(-back.log_speedup)
    assert (there.memory_role, back.memory_role) == ("saver", "hungry")
    assert there.sd == pytest.approx(back.sd)


def test_between_two_savers_no_memory_is_claimed_and_the_gains_are_subtracted():
    made = practice(recompute={"choices": ["full", "selective", "none"], "default": "full"})
    partly, none = made["recompute", "selective"], made["recompute", "none"]
    assert partly.memory_role == "neutral"
    assert 0 < partly.log_speedup < none.log_speedup


def test_what_somebody_claims_is_left_to_them():
    claim = {"knob": "bf16", "value": True, "log_speedup": -0.4, "source": "agent"}
    made = practice([claim], bf16=SWITCH, torch_compile=SWITCH)
    assert set(made) == {("torch_compile", True)}


def test_patches_and_settings_are_kinds_that_keep_their_word_apart():
    made = practice(bf16={**SWITCH, "kind": "patch"}, torch_compile=SWITCH)
    assert made["bf16", True].kind == "patch"
    assert made["torch_compile", True].kind == "setting"


def test_the_search_believes_it_until_told_otherwise_and_can_be_run_without():
    space = {"knobs": {"gradient_checkpointing": SWITCH, "torch_compile": SWITCH}}

    def expected(*trials, without=()):
        searcher = Searcher(space, without=without)
        for setting, time_s in [({}, 1.0), *trials]:
            searcher.tell(setting, {"status": "ok", "step_time_s": time_s})
        return searcher.predict([{"torch_compile": True}])[0]["step_time_s"]["value"]

    assert expected() < 0.98
    assert expected(without=("priors",)) == pytest.approx(1.0, abs=0.005)
    assert expected(({"torch_compile": True}, 1.2)) > 1.15
