import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.search.layouts import Layouts
from infrarsi.search.physics import job_physics
from infrarsi.search.seeds import draw_from
from infrarsi.search.space import read_space

DEGREES = [1, 2, 4, 8]
JOB = {
    "hardware": "H100-SXM-80GB", "n_gpus": 64, "n_layers": 32, "d_model": 4096, "n_heads": 32,
    "n_kv_heads": 8, "d_ffn": 14336, "vocab_size": 128256, "seq_len": 4096,
    "global_batch_seqs": 512, "precision_class": "bf16", "zero_stage": 1,
}  # fmt: skip


def degree(choices=DEGREES):
    return {"type": "ordinal", "choices": list(choices), "kind": "parallelism", "default": 1}


def described(**more):
    return {"knobs": {"tp": degree(), "pp": degree(), "compile": {"type": "bool"}, **more}}


def eight_devices(setting):
    return None if setting["tp"] * setting["pp"] <= 8 else "only eight devices"


def layouts(space, seed=0, **known):
    return Layouts(space, lambda: draw_from(space, np.random.default_rng(seed)), **known)


def test_each_allowed_layout_is_put_into_a_row_that_keeps_its_other_values():
    space = read_space(described(), eight_devices)
    (row,) = space.encoding.rows([{"compile": True}])
    found = [space.encoding.setting(r) for r in layouts(space).put_into(row)]
    assert all(s["compile"] for s in found)
    pairs = [(s["tp"], s["pp"]) for s in found]
    assert sorted(pairs) == [(t, p) for t in DEGREES for p in DEGREES if t * p <= 8]


def test_what_is_tied_to_the_degrees_moves_with_them():
    micro = {"type": "ordinal", "choices": [1, 2, 4], "default": 1}
    accum = {"type": "ordinal", "choices": [8, 16, 32], "default": 32}

    def valid(s):
        rows = s["micro_batch_size"] * s["grad_accum"] * (8 // s["tp"])
        return None if s["pp"] == 1 and rows == 256 else "another global batch"

    space = read_space(described(micro_batch_size=micro, grad_accum=accum), valid)
    found = [space.encoding.setting(r) for r in layouts(space).put_into(space.start)]
    assert {(s["micro_batch_size"], s["grad_accum"], s["tp"]) for s in found} == {
        (1, 32, 1), (2, 16, 1), (2, 32, 2), (4, 8, 1), (4, 16, 2), (4, 32, 4),
    }  # fmt: skip


def test_sharding_that_only_some_layouts_allow_moves_with_them():
    def valid(s):
        return "no ZeRO 3 in a pipeline" if s["pp"] > 1 and s["zero_stage"] == 3 else None

    space = read_space(described(zero_stage={"choices": [1, 3]}), valid)
    found = [space.encoding.setting(r) for r in layouts(space).put_into(space.start)]
    assert {(s["pp"], s["zero_stage"]) for s in found} == {(1, 3), *((p, 1) for p in DEGREES)}


def test_each_layout_comes_with_each_way_to_pay_for_its_memory():
    space = read_space(described(recompute={"choices": ["full", "none"]}), eight_devices)
    found = [space.encoding.setting(r) for r in layouts(space).put_into(space.start)]
    assert len(found) == 2 * 10
    assert {s["recompute"] for s in found if s["tp"] == 8} == {"full", "none"}


def test_without_degrees_there_are_no_layouts():
    knobs = {"micro_batch_size": {"choices": [1, 2, 4]}, "recompute": {"choices": ["full", "none"]}}
    space = read_space({"knobs": knobs}, None)
    assert layouts(space).put_into(space.start).shape == (0, 2)


def test_where_there_are_too_many_to_list_allowed_ones_are_drawn():
    names = ("tp", "pp", "cp", "ep", "dp", "nodes", "replicas")
    space = read_space({"knobs": {n: degree() for n in names}}, None)
    rng = np.random.default_rng(0)
    rows = Layouts(space, lambda: draw_from(space, rng)).put_into(space.start)
    assert 50 < len(rows) <= 600
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_of_a_large_table_the_physics_keeps_layouts_it_expects_to_be_fast():
    knobs = {
        "tp": degree(), "pp": degree(), "cp": degree(), "ep": degree([1, 2]),
        "micro_batch_size": {"type": "ordinal", "choices": [1, 2, 4, 8], "default": 1},
        "recompute": {"choices": ["full", "none"]},
    }  # fmt: skip
    space = read_space({"knobs": knobs}, None)
    physics = job_physics(space.encoding, JOB)
    assert physics is not None
    chosen = layouts(space, physics=physics).put_into(space.start)
    spread = layouts(space).put_into(space.start)
    assert len(chosen) == len(spread) == 600
    mean_s = [float(physics.time_s(rows).sum(axis=1).mean()) for rows in (chosen, spread)]
    assert mean_s[0] < 0.8 * mean_s[1]


def test_within_a_capacity_the_kept_layouts_need_less_memory():
    knobs = {
        "tp": degree(), "pp": degree(), "cp": degree(),
        "micro_batch_size": {"type": "ordinal", "choices": [1, 2, 4, 8, 16, 32], "default": 1},
        "recompute": {"choices": ["full", "none"]},
    }  # fmt: skip
    space = read_space({"knobs": knobs}, None)
    physics = job_physics(space.encoding, JOB)
    free = layouts(space, physics=physics).put_into(space.start)
    tight = layouts(space, physics=physics, capacity_gib=30.0).put_into(space.start)
    share = [float((physics.memory_gib(r).sum(axis=1) > 30.0).mean()) for r in (free, tight)]
    assert share[1] < share[0]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 64), st.integers(0, 1000))
def test_every_layout_put_into_the_start_is_allowed(n_devices, seed):
    def valid(s):
        return None if s["tp"] * s["pp"] <= n_devices else "too few devices"

    space = read_space(described(), valid)
    rows = layouts(space, seed).put_into(space.start)
    assert len(rows) == sum(t * p <= n_devices for t in DEGREES for p in DEGREES)
    assert len(space.allowed(rows)) == len(rows)


@pytest.mark.parametrize("seed", range(3))
def test_the_table_is_the_same_for_the_same_draws(seed):
    space = read_space(described(), eight_devices)
    first, second = (layouts(space, seed).put_into(space.start) for _ in range(2))
    assert (first == second).all()
