"""Rows that functions of the workspace collect, cut up or hand on."""

import pytest

from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, read

TRAIN = """
model = torch.nn.Linear(8, 8)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(9):
    for x, y in batches():
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
    opt.step()
"""
CUT = """
import torch
MICRO, ACCUM, WORLD = 4, 3, 1
DATA = torch.arange(1000)
def batches():
    starts = torch.randint(900, (MICRO * ACCUM * WORLD,))
    for i in range(ACCUM):
        part = starts[i * MICRO : (i + 1) * MICRO]
        rows = torch.stack([DATA[s : s + 9] for s in part])
        yield rows[:, :-1], rows[:, 1:]
"""
COLLECTED = """
import torch
MICRO, ACCUM = 4, 3
DATA = torch.arange(1000)
def batch(n):
    xs, ys = [], []
    for _ in range(n):
        at = int(torch.randint(900, ()))
        xs.append(DATA[at : at + 8])
        ys.append(DATA[at + 1 : at + 9])
    return torch.stack(xs), torch.stack(ys)
def batches():
    for _ in range(ACCUM):
        yield batch(MICRO)
"""
HANDED_ON = """
import torch
from torch.utils.data import DataLoader
MICRO, ACCUM = 4, 3
def make(n):
    return DataLoader(torch.arange(1000).view(-1, 8), batch_size=n), None
loader, _ = make(MICRO)
def stream():
    while True:
        yield from loader
it = stream()
def batches():
    for _ in range(ACCUM):
        yield next(it)
"""


@pytest.mark.parametrize("text", [CUT, COLLECTED, HANDED_ON])
def test_micro_batch_and_accumulation_of_a_generator(text: str):
    found = read(MappingSources({"t.py": text + TRAIN}), Launch(script="t.py"))
    facts = [found.fact(name) for name in ("micro_batch", "accumulation", "global_batch")]
    assert [fact.value if fact else None for fact in facts] == [4, 3, 12]


def test_a_generator_that_yields_under_a_condition_has_no_known_count():
    text = CUT.replace("        yield", "        if part.sum() > 3:\n            yield")
    found = read(MappingSources({"t.py": text + TRAIN}), Launch(script="t.py"))
    accumulation = found.fact("accumulation")
    assert accumulation is not None
    assert accumulation.value is None
