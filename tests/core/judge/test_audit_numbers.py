import numpy as np
import pytest
from judged import open_bytes, write_audit

from infrarsi.judge import audit_numbers


def parameters(scale=1.0, noise=0.0, seed=0):
    rng, extra = np.random.default_rng(0), np.random.default_rng(seed)
    made = {}
    for name, shape in (("block.w", (30, 20)), ("block.b", (20,)), ("head.w", (5, 30))):
        before, grad = rng.standard_normal(shape), rng.standard_normal(shape)
        grad = scale * grad * (1 + noise * extra.standard_normal(shape))
        made[name] = {
            "before": before,
            "grad": grad,
            "after": before - 0.5 * grad,
            "state.exp_avg": 0.1 * grad,
        }
    return made


@pytest.fixture
def compare(tmp_path):
    def run(candidate, redo, dtypes=None, redo_dtypes=None):
        ours = write_audit(tmp_path / "c", candidate, dtypes=dtypes)
        theirs = write_audit(tmp_path / "r", redo, dtypes=redo_dtypes)
        (one,) = audit_numbers.compare(
            str(tmp_path / "c"), (ours,), str(tmp_path / "r"), (theirs,), 5, open_bytes
        )
        return one

    return run


def test_the_same_step_differs_by_nothing(compare):
    one = compare(parameters(), parameters())
    assert one.grad_rel_err == 0
    assert one.update_rel_err == 0
    assert one.start_rel_err == 0
    assert len(one.tensors) == 3


def test_errors_are_relative_to_the_baseline_over_all_tensors(compare):
    ours, theirs = parameters(noise=1e-2), parameters()
    one = compare(ours, theirs)
    flat = {
        s: np.concatenate([p["grad"].ravel() for p in s_.values()])
        for s, s_ in (("c", ours), ("b", theirs))
    }
    expected = np.linalg.norm(flat["c"] - flat["b"]) / np.linalg.norm(flat["b"])
    assert one.grad_rel_err == pytest.approx(expected, rel=1e-4)


def test_chunks_do_not_change_the_sums(compare, monkeypatch):
    whole = compare(parameters(noise=0.1), parameters())
    monkeypatch.setattr(audit_numbers, "_CHUNK", 7)
    pieces = compare(parameters(noise=0.1), parameters())
    assert pieces.grad_rel_err == pytest.approx(whole.grad_rel_err, rel=1e-9)
    assert pieces.update_rel_err == pytest.approx(whole.update_rel_err, rel=1e-9)


def test_wrapped_names_are_matched_by_name_and_renamed_ones_by_order(compare):
    wrapped = {f"module._orig_mod.{k}": v for k, v in parameters().items()}
    assert compare(wrapped, parameters()).matched_by == "name"
    renamed = {f"x{i}": v for i, v in enumerate(parameters().values())}
    by_order = compare(renamed, parameters())
    assert by_order.matched_by == "order"
    assert by_order.grad_rel_err == 0


def test_a_parameter_the_candidate_left_out_is_missing(compare):
    ours = parameters()
    del ours["head.w"]
    assert compare(ours, parameters()).missing == ("head.w",)


def test_a_missing_gradient_counts_as_zero(compare):
    ours = parameters()
    del ours["block.w"]["grad"]
    one = compare(ours, parameters())
    worst = one.worst(1)[0]
    assert worst.name == "block.w"
    assert worst.grad_norm_candidate == 0
    assert worst.grad_rel_err == pytest.approx(1.0)


def test_bf16_weights_are_decoded_and_reported(compare):
    dtypes = {(name, role): "bfloat16" for name, p in parameters().items() for role in p}
    one = compare(parameters(), parameters(), dtypes)
    assert 1e-4 < one.grad_rel_err < 1e-2
    assert {(d.baseline, d.candidate) for d in one.dtypes} == {("float32", "bfloat16")}


def test_16_bit_state_beside_fp32_weights_is_reported_though_the_redo_took_it_over(compare):
    dtypes = {("block.w", "state.exp_avg"): "bfloat16"}
    one = compare(parameters(), parameters(), dtypes, dtypes)
    assert [(d.role, d.name) for d in one.dtypes] == [("state.exp_avg", "block.w")]


def test_float16_is_decoded(compare):
    dtypes = {("head.w", "grad"): "float16"}
    one = compare(parameters(), parameters(), dtypes)
    assert 0 < one.grad_rel_err < 1e-3


def test_non_finite_values_are_counted_and_do_not_spoil_the_sums(compare):
    ours = parameters()
    ours["block.b"]["grad"][3] = np.nan
    one = compare(ours, parameters())
    assert one.n_nonfinite_candidate == 1
    assert one.n_nonfinite_baseline == 0
    assert np.isfinite(one.grad_rel_err)


def test_a_uniformly_scaled_gradient_is_told_from_another_one(compare):
    scale, rest = compare(parameters(scale=2.0), parameters()).best_scale()
    assert scale == pytest.approx(2.0, rel=1e-6)
    assert rest < 1e-3
    assert compare(parameters(noise=1.0), parameters()).best_scale()[1] > 0.3


def test_a_step_only_one_side_audited_is_unreadable(tmp_path):
    ours = write_audit(tmp_path / "c", parameters())
    (one,) = audit_numbers.compare(
        str(tmp_path / "c"), (ours,), str(tmp_path / "r"), (), 5, open_bytes
    )
    assert "baseline" in one.unreadable


@pytest.mark.parametrize("file", ["../c/step5.rank0.bin", "/etc/passwd", "gone.bin"])
def test_a_file_outside_the_folder_or_gone_is_never_opened(tmp_path, file):
    opened = []

    def opener(path):
        opened.append(path)
        return open_bytes(path)

    ours = write_audit(tmp_path / "c", parameters())
    theirs = write_audit(tmp_path / "r", parameters())
    lying = ours.model_copy(update={"audits": (ours.audits[0].model_copy(update={"file": file}),)})
    (one,) = audit_numbers.compare(
        str(tmp_path / "c"), (lying,), str(tmp_path / "r"), (theirs,), 5, opener
    )
    assert "candidate" in one.unreadable
    assert all(path == f"{tmp_path}/c/gone.bin" for path in opened)


@pytest.mark.parametrize(
    "change",
    [{"offset": 10**9}, {"offset": -4}, {"n_bytes": 3}, {"dtype": "complex64"}, {"shape": (-1,)}],
)
def test_an_index_that_lies_about_the_file_is_unreadable(tmp_path, change):
    ours = write_audit(tmp_path / "c", parameters())
    theirs = write_audit(tmp_path / "r", parameters())
    first, *rest = ours.audits[0].tensors
    audit = ours.audits[0].model_copy(update={"tensors": (first.model_copy(update=change), *rest)})
    (one,) = audit_numbers.compare(
        str(tmp_path / "c"),
        (ours.model_copy(update={"audits": (audit,)}),),
        str(tmp_path / "r"),
        (theirs,),
        5,
        open_bytes,
    )
    assert "block.w" in one.unreadable
