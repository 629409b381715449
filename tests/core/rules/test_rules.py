"""Each rule on texts with carets: what is marked where, what is not, and what the fixes do."""

import logging
from collections.abc import Iterator

import pytest
from carets import marks_of, split_carets

from infrarsi.contract import CATALOGUE, JobConfig, Lock, Violation, make_lock
from infrarsi.edits import apply_edits
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Program, default_job, follow, propose_contract, read
from infrarsi.rules import RULES, Change, check_change, help_page, run_rules

TRAINER = """\
import argparse
import os
import torch
import torch.nn.functional as F
from model import Net
{constants}
SEQ = 64
parser = argparse.ArgumentParser()
parser.add_argument("--seq", type=int, default=128)
args = parser.parse_args()
world = int(os.environ.get("WORLD_SIZE", 1))
{accumulation}
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

def get_batch(data):
    starts = torch.randint(len(data) - SEQ, (MICRO,))
    return torch.stack([data[i : i + SEQ] for i in starts])

for step in range(10):
    for _ in range(accum):
        batch = get_batch(torch.arange(1000))
        loss = F.cross_entropy(model(batch), batch) / accum
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MODEL = (
    "import torch.nn as nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
)
DERIVED = TRAINER.format(
    constants="GLOBAL = 16\nMICRO = 4", accumulation="accum = GLOBAL // (MICRO * world)"
)
INDEPENDENT = TRAINER.format(constants="MICRO = 4\nACCUM = 4", accumulation="accum = ACCUM")


def _sources(text: str, config: str | None = None) -> MappingSources:
    texts = {"train.py": text, "model.py": MODEL}
    return MappingSources(texts if config is None else {**texts, "infrarsi.toml": config})


def _lock(text: str, launch: str = "python train.py", **facts: int) -> Lock:
    parsed = parse_launch(launch)
    reading = read(_sources(text), parsed)
    job = default_job("job", parsed, reading, "python")
    job = JobConfig(**{**job.model_dump(), "facts": facts})
    return make_lock(propose_contract(job, parsed, reading), {}, "c0ffee")


def _check(
    before: str, after: str, launch: str = "python train.py", at_lock: str = "python train.py"
) -> tuple[Violation, ...]:
    was = _program(before, at_lock)
    return check_change(_lock(before, at_lock), _program(after, launch), was)


def _program(text: str, launch: str = "python train.py", config: str | None = None) -> Program:
    return follow(_sources(text, config), parse_launch(launch))


def _fixed(text: str, violation: Violation, number: int) -> str:
    return apply_edits(text, violation.fixes[number].edits)


@pytest.mark.parametrize("text", [DERIVED, INDEPENDENT])
@pytest.mark.parametrize("launch", ["python train.py", "torchrun --nproc-per-node 2 train.py"])
def test_an_untouched_baseline_has_no_findings(text: str, launch: str):
    assert _check(text, text, launch, launch) == ()


@pytest.mark.parametrize(
    ("before", "old", "new"),
    [
        (INDEPENDENT, "MICRO = 4", "MICRO = 2\n        ^ W101"),
        (INDEPENDENT, "ACCUM = 4", "ACCUM = 20\n        ^^ W101"),
        (DERIVED, "GLOBAL = 16", "GLOBAL = 8\n         ^ W101"),
        (DERIVED, "MICRO = 4", "MICRO = 5\n        ^ W101"),
        (INDEPENDENT, "SEQ = 64", "SEQ = 2 ** 5\n      ^^^^^^ W102"),
        (
            INDEPENDENT,
            "model = Net()",
            "model = Net()\nmodel = model.to(torch.bfloat16)\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^ L203",
        ),
        (
            INDEPENDENT,
            "model = Net()",
            "torch.set_default_dtype(torch.float16)\n"
            "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ L203\nmodel = Net()\n",
        ),
        (INDEPENDENT, "model = Net()", "model = Net().half()\n        ^^^^^^^^^^^^ L203"),
    ],
)
def test_a_breach_is_marked_on_the_edited_fact(before: str, old: str, new: str):
    after, marks = split_carets(before.replace(old, new))
    found = _check(before, after)
    assert marks_of(found, "train.py") == marks
    assert all(violation.severity == "error" for violation in found)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (INDEPENDENT, INDEPENDENT.replace("MICRO = 4\nACCUM = 4", "MICRO = 8\nACCUM = 2")),
        (INDEPENDENT, INDEPENDENT.replace("MICRO = 4\nACCUM = 4", "ACCUM = 1\nMICRO = 2 ** 4")),
        (DERIVED, DERIVED.replace("MICRO = 4", "MICRO = 16")),
        (DERIVED, INDEPENDENT),
        (INDEPENDENT, INDEPENDENT.replace("MICRO", "ROWS")),
        (INDEPENDENT, INDEPENDENT.replace("optimizer.zero_grad()", "optimizer.zero_grad(True)")),
    ],
)
def test_an_honest_change_gives_nothing(before: str, after: str):
    assert _check(before, after) == ()


def test_the_message_says_what_was_what_is_and_what_is_held():
    (violation,) = _check(INDEPENDENT, INDEPENDENT.replace("ACCUM = 4", "ACCUM = 2"))
    assert violation.message == (
        "8 sequences per step instead of 16: micro-batch 4 x accumulation 2 x 1 process; "
        "the contract holds 16 (micro-batch 4 x accumulation 4 x 1 process)."
    )
    assert violation.contract_place is not None
    assert violation.contract_place.line == 7


def test_the_fixes_restore_or_compensate():
    after = INDEPENDENT.replace("MICRO = 4", "MICRO = 2")
    (violation,) = _check(INDEPENDENT, after)
    assert [fix.title for fix in violation.fixes] == [
        "Restore micro-batch 4",
        "Accumulate 8 instead of 4, so that 16 sequences per step stay",
    ]
    assert _fixed(after, violation, 0) == INDEPENDENT
    assert "ACCUM = 8" in _fixed(after, violation, 1)
    assert _check(INDEPENDENT, _fixed(after, violation, 1)) == ()


def test_less_accumulation_is_made_up_for_by_the_micro_batch():
    after = INDEPENDENT.replace("ACCUM = 4", "ACCUM = 1")
    (violation,) = _check(INDEPENDENT, after)
    assert violation.fixes[1].title.startswith("Use micro-batch 16 instead of 4")
    assert _check(INDEPENDENT, _fixed(after, violation, 1)) == ()


def test_no_compensation_is_offered_where_none_comes_out_even():
    (violation,) = _check(INDEPENDENT, INDEPENDENT.replace("MICRO = 4", "MICRO = 3"))
    assert [fix.title for fix in violation.fixes] == ["Restore micro-batch 4"]


def test_a_global_batch_is_only_restored():
    after = DERIVED.replace("GLOBAL = 16", "GLOBAL = 32")
    (violation,) = _check(DERIVED, after)
    assert [fix.title for fix in violation.fixes] == ["Restore global batch 16"]
    assert _fixed(after, violation, 0) == DERIVED


def test_fixes_count_code_points_and_not_bytes():
    before = INDEPENDENT.replace("MICRO = 4", "MICRO = 4; NOTE = 'é𝄞'; ACCUM = 4").replace(
        "\nACCUM = 4", ""
    )
    after = before.replace("ACCUM = 4", "ACCUM = 2")
    (violation,) = _check(before, after)
    assert _fixed(after, violation, 0) == before


def test_what_can_no_longer_be_told_is_left_to_a_run():
    after = INDEPENDENT.replace("ACCUM = 4", "ACCUM = int(open('n').read())")
    assert _check(INDEPENDENT, after) == ()


def test_more_processes_break_the_batch_unless_it_is_derived():
    torchrun = "torchrun --nproc-per-node 2 train.py"
    assert [v.code for v in _check(DERIVED, DERIVED, torchrun)] == ["E501"]
    found = _check(INDEPENDENT, INDEPENDENT, torchrun)
    assert [v.code for v in found] == ["W101", "E501"]
    assert found[0].fixes[0].title.startswith("Accumulate 2 instead of 4")
    assert found[1].message == "2 processes instead of 1; the contract holds 1."


def test_other_processes_are_marked_on_the_launch_line():
    config = '[job.job]\n# here\nlaunch = "torchrun --nproc-per-node 2 train.py"\n'
    now = _program(DERIVED, "torchrun --nproc-per-node 2 train.py", config)
    (violation,) = check_change(_lock(DERIVED), now)
    assert violation.place is not None
    assert str(violation.place) == "infrarsi.toml:3:1"


def test_a_shorter_sequence_through_an_argument_is_seen():
    before = INDEPENDENT.replace("i + SEQ", "i + args.seq")
    found = _check(before, before, "python train.py --seq 64")
    assert [v.code for v in found] == ["W102"]
    assert found[0].message == "Rows of 64 tokens instead of 128; the contract holds 128."


def test_a_cast_under_an_unknown_condition_is_a_warning():
    after = INDEPENDENT.replace(
        "model = Net()", "model = Net()\nif torch.cuda.is_available():\n    model.half()"
    )
    (violation,) = _check(INDEPENDENT, after)
    assert (violation.code, violation.severity) == ("L203", "warning")


def test_a_cast_that_does_not_happen_is_nothing():
    after = INDEPENDENT.replace("model = Net()", "model = Net()\nif world > 4:\n    model.half()")
    assert _check(INDEPENDENT, after) == ()


def test_a_baseline_in_16_bits_is_left_alone():
    half = INDEPENDENT.replace("model = Net()", "model = Net().half()")
    assert _check(half, half) == ()


def test_autocast_is_allowed():
    after = INDEPENDENT.replace(
        "        loss = F.cross_entropy(model(batch), batch) / accum",
        "        with torch.autocast('cpu', dtype=torch.bfloat16):\n"
        "            logits = model(batch)\n"
        "        loss = F.cross_entropy(logits.float(), batch) / accum",
    )
    assert after != INDEPENDENT
    assert _check(INDEPENDENT, after) == ()


def test_what_the_user_gave_is_held_as_a_warning():
    unread = INDEPENDENT.replace("ACCUM = 4", "ACCUM = int(open('n').read())")
    lock = _lock(unread, accumulation=4)
    now = _program(INDEPENDENT.replace("ACCUM = 4", "ACCUM = 2"))
    (violation,) = check_change(lock, now)
    assert (violation.code, violation.severity) == ("W101", "warning")


def test_a_locked_file_is_compared_by_its_hash():
    lock = make_lock(_lock(DERIVED).contract, {"data/a": "1", "data/b": "2", "data/c": "3"}, "")
    hashes = {"data/a": "1", "data/b": "x", "data/c": "", "other": "y"}
    found = check_change(lock, _program(DERIVED), changed_files=hashes)
    assert [(v.code, v.place and v.place.file) for v in found] == [
        ("S401", "data/b"),
        ("S401", "data/c"),
    ]
    assert found[1].message == "data/c is locked by the contract and is gone."


def test_a_rule_that_fails_costs_one_log_line_only(caplog: pytest.LogCaptureFixture):
    def broken(change: Change) -> Iterator[Violation]:
        raise RuntimeError(f"no {change.contract.job}")

    now = _program(INDEPENDENT.replace("MICRO = 4", "MICRO = 2"))
    change = Change(_lock(INDEPENDENT), now)
    with caplog.at_level(logging.ERROR):
        found = run_rules({"X000": broken, **RULES}, change)
    assert [v.code for v in found] == ["W101"]
    assert len(caplog.records) == 1


def test_every_rule_is_in_the_catalogue_and_has_a_help_page():
    for code in RULES:
        assert CATALOGUE[code].decided_by in {"static", "both"}
        assert help_page(code).startswith(f"{code}: ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    for _ in range(accum):", "    for _ in range("),
        ("    for _ in range(accum):", "    fo"),
        ("MICRO = 4", "MICRO = "),
        ("SEQ = 64", "SEQ = ("),
    ],
)
def test_a_line_being_typed_is_no_breach(old: str, new: str):
    assert _check(INDEPENDENT, INDEPENDENT.replace(old, new)) == ()


def test_a_written_breach_is_marked_while_another_line_is_being_typed():
    after = INDEPENDENT.replace("MICRO = 4", "MICRO = 2").replace("SEQ = 64", "SEQ = (")
    assert [v.code for v in _check(INDEPENDENT, after)] == ["W101"]


def test_edits_that_were_locked_before_they_were_committed_are_no_breach():
    edited = INDEPENDENT.replace("range(10)", "range(5)").replace("lr=1e-3", "lr=2e-3")
    committed = _program(INDEPENDENT)
    assert check_change(_lock(edited), _program(edited), committed) == ()
    later = _program(edited.replace("MICRO = 4", "MICRO = 2"))
    assert [v.code for v in check_change(_lock(edited), later, committed)] == ["W101"]
