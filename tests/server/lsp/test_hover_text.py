"""What a hover says of a knob."""

from recorded_results import calibration

from infrarsi.contract import Fact, Lock, Scope, TaskContract, Workload, make_lock
from infrarsi.knobs import Binding, Knob
from infrarsi.launch import Launch
from infrarsi.wire.results import Interval, KnobPrediction, PredictionTable, Price
from infrarsi_server.lsp.hover_text import fact_text, knob_text
from infrarsi_server.session import Numbers

BINDING = Binding(carrier="constant", name="MICRO_BATCH", file="train.py")
KNOB = Knob(
    name="micro_batch",
    type="ordinal",
    choices=(2, 4, 8),
    default=4,
    role="micro_batch",
    bindings=(BINDING,),
)


def lock() -> Lock:
    contract = TaskContract(
        job="main",
        launch=Launch(script="train.py"),
        workload=Workload(global_batch_rows=64, seq_len_tokens=256),
        scope=Scope(editable=(), locked=()),
    )
    return make_lock(contract, {}, "c0ffee")


def row(value: int, **changes: object) -> KnobPrediction:
    made = KnobPrediction(
        knob="micro_batch",
        value=value,
        step_time_s=Interval(value=1.25, low=1.2, high=1.31),
        peak_mem_bytes=Interval(value=3.0 * 2**30, low=2.9 * 2**30, high=3.2 * 2**30),
        mfu_frac=0.123,
        p_fit=0.875,
        known="predicted",
    )
    return made.model_copy(update=changes)


def table(*rows: KnobPrediction) -> Numbers:
    made = PredictionTable(contract_digest=lock().digest, version=1, rows=rows)
    return Numbers(table=made)


def test_without_a_table_it_says_that_nothing_was_measured() -> None:
    said = knob_text(KNOB, BINDING, lock(), Numbers())
    assert "No run has been measured yet" in said
    assert "64 rows of 256 tokens each in every step on 1 process" in said
    assert f"Job main, locked as {lock().digest[:12]}." in said


def test_after_doctor_the_locked_value_has_its_measured_row() -> None:
    edited = KNOB.model_copy(update={"default": 8})
    agreed = Fact(name="micro_batch", value=4)
    contract = lock().contract.model_copy(update={"facts": (agreed,)})
    numbers = Numbers(calibration=calibration("d"))
    said = knob_text(edited, BINDING, make_lock(contract, {}, "c0ffee"), numbers)
    assert "| 4 | 2.00 s (1.90 s to 2.10 s) | 24.5 % | 2.00 GiB | > 99 % | measured |" in said
    assert "**InfraRSI: Run** tries the other values." in said


def test_every_value_has_a_row_and_the_present_one_stands_out() -> None:
    measured = row(4, known="measured", n_trials=3, p_fit=1.0)
    said = knob_text(KNOB, BINDING, lock(), table(row(2), measured, row(8, p_fit=0.001)))
    rows = [line for line in said.splitlines() if line.startswith("|")][2:]
    assert rows[0] == (
        "| 2 | 1.25 s (1.20 s to 1.31 s) | 12.3 % | 3.00 GiB (2.90 GiB to 3.20 GiB) | 88 % "
        "| predicted |"
    )
    assert rows[1].startswith("| **4** |")
    assert rows[1].endswith("| > 99 % | measured, 3 trials |")
    assert "| < 1 % |" in rows[2]


def test_what_a_tried_value_adds_is_told_below_the_table() -> None:
    time = Interval(value=-0.25, low=-0.3, high=-0.2, level=0.9)
    memory = Interval(value=2.0**29, low=0.0, high=2.0**30, level=0.9)
    prices = (
        Price(knob="micro_batch", value=8, step_time_s=time, peak_mem_bytes=memory, n_trials=2),
        Price(knob="micro_batch", value=2, step_time_s=time),
        Price(knob="threads", value=2, step_time_s=time, n_trials=1),
    )
    made = table(row(8)).table
    assert made is not None
    said = knob_text(
        KNOB, BINDING, lock(), Numbers(table=made.model_copy(update={"prices": prices}))
    )
    assert (
        "- 8 adds -250 ms (-300 ms to -200 ms) and +512 MiB (+0 MiB to +1.00 GiB) (2 trials)\n"
    ) in said
    assert said.count(" adds ") == 1


def test_a_constant_that_follows_another_says_what_it_follows() -> None:
    follower = BINDING.model_copy(update={"name": "ACCUM", "quotient_of": 64})
    said = knob_text(KNOB, follower, lock(), Numbers())
    assert said.startswith("**ACCUM** follows the micro-batch, now 4: 64 divided by it\n")


def test_a_constant_says_what_it_sets_and_to_what() -> None:
    said = knob_text(KNOB, BINDING, lock(), Numbers())
    assert said.startswith(r"**MICRO\_BATCH** sets the micro-batch: 4" + "\n")


def test_a_fact_says_what_the_contract_holds_and_what_is_read() -> None:
    agreed = Fact(name="seq_len", value=256)
    contract = lock().contract.model_copy(update={"facts": (agreed,)})
    said = fact_text(Fact(name="seq_len", value=128), make_lock(contract, {}, "c0ffee"))
    assert "read as 128" in said
    assert "The contract holds 256." in said


def test_rows_of_other_knobs_are_left_out() -> None:
    other = row(2, knob="threads")
    assert "No run has been measured yet" in knob_text(KNOB, BINDING, lock(), table(other))


def test_text_from_the_source_cannot_break_the_markdown() -> None:
    odd = KNOB.model_copy(update={"default": "a|b\n[x](command:y)`"})
    said = knob_text(odd, BINDING, lock(), Numbers()).splitlines()[0]
    assert r"a\|b \[x\]\(command:y\)\`" in said
