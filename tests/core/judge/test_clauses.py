import pytest
from judged import (
    audit,
    calibration,
    endurance,
    honest,
    lock,
    rank,
    step,
    tensor,
    turns,
    with_steps,
)

from infrarsi.contract.contract import EquivalencePolicy, Fact
from infrarsi.judge import ended_early
from infrarsi.judge.endurance import exceeds_claim
from infrarsi.judge.judging import judge
from infrarsi.run import RunObservation
from infrarsi.wire.probe import ProbeFailure


def codes(evidence):
    return [v.code for v in judge(evidence).violations]


def test_an_honest_candidate_is_accepted_with_every_check_named():
    verdict = judge(honest())
    assert verdict.kind == "accepted"
    assert verdict.missing == ()
    assert len(verdict.checks) == 12


@pytest.mark.parametrize(
    ("without", "word"),
    [
        ({"candidate": ()}, "candidate"),
        ({"baseline": ()}, "baseline"),
        ({"audits": ()}, "audited"),
        ({"turns": ()}, "turns"),
        ({"locked_after": None}, "locked files"),
        ({"endurance": None}, "endurance"),
        ({"calibration": None}, "calibration"),
        ({"candidate_step_time_s": None}, "step time"),
    ],
)
def test_missing_evidence_is_never_accepted_and_is_named(without, word):
    verdict = judge(honest(**without))
    assert verdict.kind == "inconclusive"
    assert any(word in sentence for sentence in verdict.missing)


def test_a_trial_in_the_search_needs_only_its_audit():
    evidence = honest(turns=(), endurance=None, calibration=None, locked_after=None, needs=())
    assert judge(evidence).kind == "accepted"


def test_a_breach_outweighs_missing_evidence():
    verdict = judge(honest(endurance=None, locked_after={"data.py": "bb"}))
    assert verdict.kind == "rejected"
    assert verdict.missing


def test_a_locked_file_changed_or_removed_is_s401():
    assert codes(honest(locked_after={"data.py": "bb"})) == ["S401"]
    assert codes(honest(locked_before={})) == ["S401"]


def test_the_order_of_rows_within_a_step_and_its_grouping_do_not_matter():
    assert codes(with_steps(micro_steps=2)) == []


def test_the_same_rows_on_other_ranks_are_the_same_rows():
    workload = lock().contract.workload.model_copy(update={"world_size": 2})

    def two(first, second):
        return tuple(
            rank(
                rank=r,
                world_size=2,
                steps=[step(i, rows=4, tokens=256, inputs_hash=f"{h + i:x}") for i in range(12)],
            )
            for r, h in ((0, first), (1, second))
        )

    evidence = honest(
        lock=lock(workload=workload),
        candidate=two(2**63, 2**63 + 5),
        baseline=two(2, 3),
        audits=(audit(), audit(rank=1)),
    )
    assert codes(evidence) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"seq_len": 32}, "W102"),
        ({"tokens": 100}, "W102"),
        ({"rows": 4}, "W101"),
        ({"inputs_hash": "77"}, "W106"),
        ({"targets_hash": "77"}, "L204"),
        ({"positions_in_loss": 100}, "L204"),
        ({"autocast": "float16"}, "L216"),
        ({"loss_dtype": "torch.bfloat16"}, "L202"),
        ({"losses": (None, 1.0, 1.0, 1.0)}, "L219"),
    ],
)
def test_a_counter_that_differs_rejects(change, code):
    assert codes(with_steps(**change)) == [code]


def test_other_rows_every_step_are_w108():
    other = [step(i, inputs_hash=f"{9000 + i:x}") for i in range(12)]
    assert codes(honest(candidate=(rank(steps=other),))) == ["W108"]


def test_rows_seen_in_the_baseline_only_leave_the_verdict_open():
    verdict = judge(with_steps(inputs_hash=None, targets_hash=None, positions_in_loss=None))
    assert verdict.kind == "inconclusive"
    unseen = (rank(steps=[step(i, inputs_hash=None) for i in range(12)]),)
    assert judge(honest(candidate=unseen, baseline=unseen)).kind == "accepted"


def test_a_non_finite_weight_is_l219_unless_the_baseline_has_one_too():
    assert codes(honest(audits=(audit(n_nonfinite_candidate=1),))) == ["L219"]
    both = honest(audits=(audit(n_nonfinite_candidate=1, n_nonfinite_baseline=1),))
    assert judge(both).kind == "inconclusive"


def test_a_baseline_that_does_not_learn_leaves_the_verdict_open():
    flat = tuple(step(i, losses=(5.0,)) for i in range(12))
    verdict = judge(honest(candidate=(rank(steps=flat),), baseline=(rank(steps=flat),)))
    assert verdict.kind == "inconclusive"
    assert "does not fall" in verdict.missing[0]


def test_the_calibrated_curve_counts_where_the_window_is_short():
    short = (rank(steps=[step(i) for i in range(4)]),)
    assert judge(honest(candidate=short, baseline=short)).kind == "inconclusive"
    long = calibration(baseline_losses=(5.0, 4.8, 4.6, 4.4, 4.2, 4.0))
    assert judge(honest(candidate=short, baseline=short, calibration=long)).kind == "accepted"


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_loss_that_leaves_the_curve_either_way_is_l224(factor):
    moved = [step(i, losses=(5.0 * 0.97**i * factor,)) for i in range(12)]
    assert codes(honest(candidate=(rank(steps=moved),))) == ["L224"]


def test_work_while_stopped_is_t301():
    assert codes(honest(turns=turns(cpu_outside_turn_s=0.04))) == []
    assert codes(honest(turns=turns(cpu_outside_turn_s=0.12))) == ["T301"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tampering": ("time.perf_counter replaced",)}, "T305"),
        ({"tampering": ("optimizer hook removed",)}, "S406"),
        ({"outside_imports": ("/tmp/model.py",)}, "S413"),
        ({"world_size": 2}, "E501"),
        ({"device": "cuda:0"}, "E501"),
        ({"torch_version": "2.14.0"}, "E502"),
        ({"parameter_dtypes": {"torch.bfloat16": 10}}, "L203"),
    ],
)
def test_what_a_rank_reports_about_itself_can_reject(change, code):
    assert codes(honest(candidate=(rank(**change),))) == [code]


def test_what_the_probe_cannot_see_leaves_the_verdict_open():
    assert judge(honest(candidate=(rank(unsupported=("two models",)),))).kind == "inconclusive"


def test_threads_are_free_unless_pinned():
    two = (rank(n_threads=2),)
    assert codes(honest(candidate=two)) == []
    pinned = lock(facts=(Fact(name="threads", value=1),))
    assert codes(honest(lock=pinned, candidate=two)) == ["E501"]


def test_a_step_faster_than_its_arithmetic_is_t315():
    assert codes(honest(candidate_step_time_s=0.21)) == []
    assert codes(honest(candidate_step_time_s=0.19)) == ["T315"]
    assert codes(honest(candidate_step_time_s=0.0)) == ["T315"]


def test_a_whole_run_slower_than_claimed_is_t312_and_busier_t303():
    assert codes(honest(endurance=endurance(wall_s=30.9))) == []
    assert codes(honest(endurance=endurance(wall_s=31.1))) == ["T312"]
    assert codes(honest(endurance=endurance(cpu_s=31.1))) == ["T303"]


def test_an_endurance_run_that_did_not_finish_proves_nothing():
    died = RunObservation(end="signal", signal=9, wall_s=1.0, cpu_s=1.0)
    assert judge(honest(endurance=endurance(observation=died))).kind == "inconclusive"
    assert judge(honest(endurance=endurance(end="exit"))).kind == "inconclusive"


def test_a_candidate_that_ends_early_may_admit_why():
    gone = ProbeFailure(kind="no_optimizer_step", message="64 backward calls")
    early = honest(candidate=(rank(failure=gone),), turns=(), audits=())
    assert [v.code for v in ended_early.clause(early).violations] == ["L210"]
    unhooked = honest(candidate=(rank(tampering=("optimizer hooks removed",)),))
    assert [v.code for v in ended_early.clause(unhooked).violations] == ["S406"]
    crash = ProbeFailure(kind="exception", message="no such file")
    assert ended_early.clause(honest(candidate=(rank(failure=crash),))).kind == "accepted"


def test_an_uneven_machine_leaves_endurance_open_but_hides_no_cpu_time():
    slow = endurance(wall_s=35.0)
    assert codes(honest(endurance=slow)) == ["T312"]
    uneven = slow.model_copy(update={"unevenness_frac": 0.6})
    assert judge(honest(endurance=uneven)).kind == "inconclusive"
    busy = endurance(wall_s=35.0, cpu_s=60.0).model_copy(update={"unevenness_frac": 0.6})
    assert "T303" in codes(honest(endurance=busy))


def on_cpus(**changes):
    """Honest evidence of a job whose models lie on the CPU."""
    plain = honest(**changes)
    sides = {
        side: tuple(r.model_copy(update={"root_module": "GPT"}) for r in getattr(plain, side))
        for side in ("candidate", "baseline")
    }
    return plain.model_copy(update=sides)


def test_wall_time_alone_is_no_proof_where_hidden_work_costs_cpu_time():
    slow = endurance(wall_s=35.0)
    verdict = judge(on_cpus(endurance=slow))
    assert verdict.kind == "inconclusive"
    assert verdict.missing[0].startswith("The machine had another load on it")
    assert exceeds_claim(on_cpus(endurance=slow))
    assert "T303" in codes(on_cpus(endurance=endurance(wall_s=35.0, cpu_s=31.1)))


def test_wall_time_alone_rejects_where_cpu_time_or_device_is_unknown():
    unknown = endurance(wall_s=35.0, claimed_cpu_s_per_step=None)
    assert codes(on_cpus(endurance=unknown)) == ["T312"]
    assert codes(on_cpus(endurance=endurance(wall_s=35.0, cpu_s=0.0))) == ["T312"]
    slow = on_cpus(endurance=endurance(wall_s=35.0))
    unseen = tuple(r.model_copy(update={"root_module": None}) for r in slow.baseline)
    assert codes(slow.model_copy(update={"baseline": unseen})) == ["T312"]
    elsewhere = tuple(r.model_copy(update={"device": "cuda:0"}) for r in slow.baseline)
    assert "T312" in codes(slow.model_copy(update={"baseline": elsewhere}))


def test_a_run_within_its_claim_or_cut_short_does_not_exceed_it():
    assert not exceeds_claim(on_cpus())
    assert not exceeds_claim(on_cpus(endurance=None))
    assert not exceeds_claim(on_cpus(endurance=endurance(wall_s=35.0, n_done=2)))
    uneven = endurance(wall_s=35.0).model_copy(update={"unevenness_frac": 0.6})
    assert not exceeds_claim(on_cpus(endurance=uneven))


def test_a_run_is_held_against_the_baselines_own_beside_it():
    slow = endurance(wall_s=35.0)
    drifted = slow.model_copy(update={"wall_drift": 1.5})
    assert judge(honest(endurance=drifted)).kind == "accepted"


def test_every_rank_announces_every_step_of_endurance():
    early = judge(honest(endurance=endurance(n_done=2)))
    assert early.kind == "inconclusive"
    assert early.missing == ("The endurance run ended after 2 of 40 steps.",)
    whole = endurance()
    gappy = whole.observation.model_copy(update={"steps": whole.observation.steps[-1:]})
    assert judge(honest(endurance=endurance(observation=gappy))).missing == (
        "The endurance run ended after 0 of 40 steps.",
    )
    workload = lock().contract.workload.model_copy(update={"world_size": 2})
    contract = lock().contract.model_copy(update={"workload": workload})
    two = honest(lock=lock().model_copy(update={"contract": contract}))
    sentence = "The endurance run ended after 0 of 40 steps."
    assert sentence in judge(two).missing
    whole = two.model_copy(update={"endurance": endurance(n_ranks=2)})
    assert sentence not in judge(whole).missing


def test_forbidden_autocast_is_l216_even_with_a_perfect_update():
    strict = lock(policy=EquivalencePolicy(allow_bf16_autocast=False))
    candidate = (rank(steps=[step(i, autocast="bfloat16") for i in range(12)]),)
    assert codes(honest(lock=strict, candidate=candidate)) == ["L216"]


def test_one_cause_is_reported_once():
    evidence = honest(
        candidate=(rank(steps=[step(i, seq_len=32) for i in range(12)]),),
        audits=(audit(tensor(grad_error=0.2)),),
    )
    assert codes(evidence) == ["W102"]
