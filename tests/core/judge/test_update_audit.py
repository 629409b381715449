import pytest
from judged import audit, honest, lock, rank, step, tensor

from infrarsi.contract.contract import EquivalencePolicy
from infrarsi.judge.audit_comparison import DtypeDifference
from infrarsi.judge.update_audit import clause


def codes(verdict):
    return [v.code for v in verdict.violations]


def autocast_steps(**changes):
    return (rank(steps=[step(i, autocast="bfloat16", **changes) for i in range(12)]),)


def test_an_honest_rewrite_is_accepted():
    verdict = clause(honest())
    assert verdict.kind == "accepted"
    assert "step 5" in verdict.checks[0]


def test_no_audit_leaves_the_verdict_open():
    assert clause(honest(audits=())).kind == "inconclusive"
    unreadable = honest(audits=(audit(unreadable="The candidate's audit is missing."),))
    assert clause(unreadable).kind == "inconclusive"


def test_a_rank_that_was_not_audited_leaves_the_verdict_open():
    workload = lock().contract.workload.model_copy(update={"world_size": 2})
    verdict = clause(honest(lock=lock(workload=workload)))
    assert verdict.kind == "inconclusive"
    assert "1 of 2 ranks" in verdict.missing[0]


def test_a_redo_that_started_elsewhere_proves_nothing():
    assert clause(honest(audits=(audit(tensor(start_diff=1.0)),))).kind == "inconclusive"


def test_bf16_autocast_is_tolerated_where_the_policy_allows_it():
    noisy = (audit(tensor("a", grad_error=2e-3, update_error=0.013), tensor("b", 0.05, 0.1)),)
    evidence = honest(audits=noisy, candidate=autocast_steps())
    assert clause(evidence).kind == "rejected"
    noisy = (audit(tensor("a", grad_error=2e-3, update_error=0.013), tensor("b", 0.05, 0.1, 0.1)),)
    assert clause(honest(audits=noisy, candidate=autocast_steps())).kind == "accepted"


@pytest.mark.parametrize(
    ("reference", "strays", "kind"),
    [
        (0.02, 0.05, "accepted"),
        (0.005, 0.023, "rejected"),
        (0.2, 0.15, "rejected"),
        (None, 0.014, "accepted"),
        (None, 0.016, "rejected"),
    ],
)
def test_in_16_bit_the_reference_arm_says_how_far_an_honest_step_strays(reference, strays, kind):
    tensors = (tensor("a", grad_error=strays), tensor("b", grad_error=strays))
    compared = audit(*tensors)
    if reference is not None:
        arm = audit(tensor("a", grad_error=reference), tensor("b", grad_error=reference))
        compared = compared.judged_by(arm.as_reference())
    verdict = clause(honest(audits=(compared,), candidate=autocast_steps()))
    assert verdict.kind == kind


def test_the_reference_arm_does_not_loosen_full_precision():
    arm = audit(tensor("a", grad_error=0.05))
    compared = audit(tensor("a", grad_error=2e-3)).judged_by(arm.as_reference())
    assert codes(clause(honest(audits=(compared,)))) == ["L216"]


def test_secret_16_bit_arithmetic_is_rejected():
    assert codes(clause(honest(audits=(audit(tensor(grad_error=2e-3)),)))) == ["L216"]


def test_autocast_does_not_loosen_a_policy_that_forbids_it():
    strict = lock(policy=EquivalencePolicy(allow_bf16_autocast=False))
    evidence = honest(
        lock=strict, audits=(audit(tensor(grad_error=2e-3)),), candidate=autocast_steps()
    )
    assert codes(clause(evidence)) == ["L216"]


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ({"seq_len": 32, "tokens": 256}, "W102"),
        ({"inputs_hash": "77"}, "W106"),
        ({"rows": 16, "micro_steps": 8, "losses": (1.2,) * 8}, "W103"),
        ({"rows": 4, "micro_steps": 2}, "W101"),
        ({"positions_in_loss": 3}, "L204"),
    ],
)
def test_the_counters_name_what_the_audit_found(steps, code):
    evidence = honest(
        audits=(audit(tensor(grad_error=0.25)),),
        candidate=(rank(steps=[step(i, **steps) for i in range(12)]),),
    )
    assert codes(clause(evidence)) == [code]


def test_a_different_gradient_without_any_hint_is_still_rejected():
    assert codes(clause(honest(audits=(audit(tensor(grad_error=0.25)),)))) == ["L208"]


@pytest.mark.parametrize(("micro_steps", "code"), [(1, "L208"), (4, "L205")])
def test_a_scaled_gradient_is_a_divisor_when_regrouped_and_clipping_otherwise(micro_steps, code):
    scaled = tensor(grad_norm_candidate=4.0, grad_diff=3.0)
    evidence = honest(
        audits=(audit(scaled),),
        candidate=(rank(steps=[step(i, micro_steps) for i in range(12)]),),
    )
    assert codes(clause(evidence)) == [code]
    assert "4 times" in clause(evidence).violations[0].message


def test_a_frozen_tensor_among_good_ones_is_found():
    frozen = tensor("b", grad_norm_candidate=0.0, grad_diff=1e-3, grad=1e-3)
    evidence = honest(audits=(audit(tensor("a"), frozen),), candidate=autocast_steps())
    assert codes(clause(evidence)) == ["L207"]


def test_a_gradient_that_is_rounding_noise_in_the_baseline_is_no_frozen_tensor():
    key_bias = tensor("k.bias", grad=1e-7, grad_norm_candidate=0.0, grad_diff=1e-7)
    assert clause(honest(audits=(audit(tensor("a"), key_bias),))).kind == "accepted"


def test_a_single_wrong_tensor_is_not_hidden_by_the_others():
    wrong = tensor("small", grad=0.01, grad_error=0.005)
    assert codes(clause(honest(audits=(audit(tensor("a"), wrong),)))) == ["L208"]


def test_a_step_that_changes_nothing_is_a_missing_update():
    still = tensor(update_norm_candidate=0.0, update_diff=0.1)
    assert codes(clause(honest(audits=(audit(still),)))) == ["W103"]


def test_equal_gradients_with_another_change_are_a_stale_update():
    assert codes(clause(honest(audits=(audit(tensor(update_error=0.3)),)))) == ["L209"]


def test_another_learning_rate_explains_another_change():
    evidence = honest(
        audits=(audit(tensor(update_error=0.3)),),
        candidate=(rank(steps=[step(i, learning_rates=(5e-4,)) for i in range(12)]),),
    )
    assert codes(clause(evidence)) == ["L211"]


def test_another_optimizer_explains_another_change():
    optimizer = rank().optimizers[0].model_copy(update={"groups": ({"eps": "1e-4"},)})
    evidence = honest(
        audits=(audit(tensor(update_error=0.3)),), candidate=(rank(optimizers=(optimizer,)),)
    )
    assert codes(clause(evidence)) == ["L210"]


def test_parameters_left_out_and_narrow_types_are_rejected():
    assert codes(clause(honest(audits=(audit(missing=("trunk.w",)),)))) == ["L207"]
    assert codes(clause(honest(audits=(audit(missing=("a",), extra=("b",)),)))) == ["W104"]
    dtype = DtypeDifference(role="before", name="w", baseline="float32", candidate="bfloat16")
    assert codes(clause(honest(audits=(audit(dtypes=(dtype,)),)))) == ["L203"]
