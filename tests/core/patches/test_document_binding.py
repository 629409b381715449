"""Knobs whose value stands in a configuration file: only that span changes."""

import json
import tomllib

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.edits import apply_edits
from infrarsi.knobs import Binding, Candidate, Space
from infrarsi.launch import Launch
from infrarsi.patches import Declined, Materialised, materialise
from infrarsi.patches.document_binding import set_document_value
from infrarsi.reading import MappingSources, read

TEXTS = {
    "c.yaml": "# é\r\nrun: {seed: 1}\r\ntrain:\r\n"
    "  rows: 4   # rows\r\n  name: 'a'\r\n  lr: 1.0e-3\r\n",
    "c.toml": "# é\n[train]\nrows = 4 # rows\nname = 'a'\nlr = 1e-3\n",
    "c.json": '{"é": 1, "train": {"rows": 4, "name": "a", "lr": 1e-3}}',
}
LOADERS = {"c.yaml": yaml.safe_load, "c.toml": tomllib.loads, "c.json": json.loads}


def binding(file: str, name: str) -> Binding:
    return Binding(carrier=file[2:], name=name, file=file)


@pytest.mark.parametrize("file", TEXTS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 8),
        ("lr", 3e-05),
        ("lr", 1e22),
        ("lr", 0.5),
        ("rows", True),
        ("name", "bf16"),
        ("name", 'q"\\ \n'),
        ("rows", "no"),
        ("rows", "5"),
    ],
)
def test_a_value_is_written_as_its_file_reads_it(file: str, name: str, value):
    old = TEXTS[file]
    new = set_document_value(binding(file, f"train.{name}"), old, value)
    assert isinstance(new, str)
    before, after = LOADERS[file](old), LOADERS[file](new)
    assert after["train"][name] == value
    assert type(after["train"][name]) is type(value)
    before["train"][name] = value
    assert after == before
    assert new.count("\r\n") == old.count("\r\n")


@pytest.mark.parametrize("file", TEXTS)
def test_a_name_that_is_gone_is_declined(file: str):
    answer = set_document_value(binding(file, "train.gone"), TEXTS[file], 1)
    assert isinstance(answer, Declined)
    assert "train.gone" in answer.reason


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(TEXTS)), st.integers(0, 90), st.integers(0, 12))
def test_a_half_typed_file_never_breaks_the_writer(file: str, at: int, length: int):
    text = TEXTS[file][:at] + TEXTS[file][at + length :]
    answer = set_document_value(binding(file, "train.rows"), text, 8)
    assert isinstance(answer, Declined) or "8" in answer


SCRIPT = """\
import torch, yaml
cfg = yaml.safe_load(open("c.yaml"))["train"]
model = torch.nn.Linear(8, 8)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    for _ in range(cfg["accum"]):
        x = torch.randn(cfg["rows"], 8)
        loss = model(x).sum()
        loss.backward()
    opt.step()
"""


def test_a_micro_batch_in_a_file_is_a_knob_whose_every_choice_can_be_written():
    launch = Launch(script="train.py")
    texts = {"train.py": SCRIPT, "c.yaml": "train:\n  rows: 4  # rows\n  accum: 2\n"}
    sources = MappingSources(texts)
    knob = next(k for k in read(sources, launch).knobs if k.name == "micro_batch")
    made = materialise(Candidate(setting={"micro_batch": 8}), Space(knobs=(knob,)), sources, launch)
    assert isinstance(made, Materialised)
    assert {edit.file for edit in made.edits} == {"c.yaml"}
    changed = apply_edits(texts["c.yaml"], made.edits)
    assert changed == "train:\n  rows: 8  # rows\n  accum: 1\n"
    after = read(MappingSources({**texts, "c.yaml": changed}), launch)
    assert [getattr(after.fact(n), "value", None) for n in ("micro_batch", "global_batch")] == [
        8,
        8,
    ]
