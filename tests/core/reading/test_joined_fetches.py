"""Rows of a step where fetches are joined, listed first, or cut from rows drawn for the step."""

import pytest

from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, read

PARTS = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

B, K, T = 4, 3, 64
ids = torch.arange(10000) % 256


class Windows(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        return ids[i * T : i * T + T], ids[i * T + 1 : i * T + 1 + T]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(256, 256)

    def forward(self, x):
        return self.table(x)


def get_batch():
    starts = torch.randint(0, len(ids) - T - 1, (B,))
    x = torch.stack([ids[s : s + T] for s in starts])
    y = torch.stack([ids[s + 1 : s + 1 + T] for s in starts])
    return x, y


def row():
    s = torch.randint(0, len(ids) - T - 1, (1,)).item()
    return ids[s : s + T], ids[s + 1 : s + 1 + T]


def joined():
    xs = []
    for _ in range(K):
        xs.append(get_batch()[0])
    return torch.cat(xs)


def pieces():
    starts = torch.randint(0, len(ids) - T - 1, (B * K,)).tolist()
    for i in range(K):
        part = starts[i * B : (i + 1) * B]
        rows = torch.stack([ids[s : s + T + 1] for s in part])
        yield rows[:, :-1], rows[:, 1:]


def endless():
    while True:
        yield from loader


def ce(x, y):
    return F.cross_entropy(net(x).view(-1, 256), y.view(-1))


net = Net()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = DataLoader(Windows(), batch_size=B)
stream = endless()
"""
PLAIN = """
for step in range(100):
    opt.zero_grad()
{}
    opt.step()
"""
METHOD = """
class Job:
    def step(self):
        opt.zero_grad()
    {}
        opt.step()

    def train(self):
        for step in range(100):
            self.step()

Job().train()
"""
JOINED = {
    "stream": """
parts = [next(stream) for _ in range(K)]
x = torch.cat([x for x, _ in parts])
y = torch.cat([y for _, y in parts])
ce(x, y).backward()""",
    "function": "x = torch.cat([get_batch()[0] for _ in range(K)])\nce(x, x).backward()",
    "helper": "x = joined()\nce(x, x).backward()",
    "single rows": """
rows = [row() for _ in range(B * K)]
x = torch.stack([r[0] for r in rows])
ce(x, x).backward()""",
    "losses": """
losses = []
for _ in range(K):
    x, y = get_batch()
    losses.append(ce(x, y))
(sum(losses) / K).backward()""",
    "a running sum": """
total = 0.0
for _ in range(K):
    x, y = get_batch()
    total += ce(x, y) / K
total.backward()""",
}
IN_PARTS = {
    "listed": """
batches = [next(stream) for _ in range(K)]
for x, y in batches:
    ce(x, y).backward()""",
    "inline": "for x, y in [next(stream) for _ in range(K)]:\n    ce(x, y).backward()",
    "appended": """
batches = []
for _ in range(K):
    batches.append(get_batch())
for x, y in batches:
    ce(x, y).backward()""",
    "counted": "for i, (x, y) in enumerate(pieces()):\n    ce(x, y).backward()",
    "zipped": "for _, (x, y) in zip(range(K), pieces()):\n    ce(x, y).backward()",
    "by next": """
drawn = iter(pieces())
for _ in range(K):
    x, y = next(drawn)
    ce(x, y).backward()""",
    "kept": "drawn = list(pieces())\nfor x, y in drawn:\n    ce(x, y).backward()",
}
UNCLEAR = {
    "zip": """
xs, ys = zip(*(get_batch() for _ in range(K)))
ce(torch.cat(xs), torch.cat(ys)).backward()""",
    "while": """
xs = []
while len(xs) < K:
    xs.append(get_batch()[0])
x = torch.cat(xs)
ce(x, x).backward()""",
    "all pieces": """
drawn = list(pieces())
x = torch.cat([piece[0] for piece in drawn])
ce(x, x).backward()""",
}


def step_rows(frame: str, body: str) -> tuple[object, object, object]:
    lines = [f"    {line}" for line in body.strip().splitlines()]
    text = PARTS + frame.format(("\n    " if frame is METHOD else "\n").join(lines))
    reading = read(MappingSources({"train.py": text}), Launch(script="train.py"))
    facts = {fact.name: fact.value for fact in reading.facts}
    return facts["micro_batch"], facts["global_batch"], facts["seq_len"]


@pytest.mark.parametrize("frame", [PLAIN, METHOD], ids=["script", "method"])
@pytest.mark.parametrize("body", JOINED.values(), ids=JOINED)
def test_batches_that_are_joined_count_together(frame: str, body: str):
    assert step_rows(frame, body) == (12, 12, 64)


@pytest.mark.parametrize("frame", [PLAIN, METHOD], ids=["script", "method"])
@pytest.mark.parametrize("body", IN_PARTS.values(), ids=IN_PARTS)
def test_batches_that_are_taken_one_by_one_count_alone(frame: str, body: str):
    assert step_rows(frame, body) == (4, 12, 64)


@pytest.mark.parametrize("body", UNCLEAR.values(), ids=UNCLEAR)
def test_rows_joined_in_a_way_not_followed_are_unknown(body: str):
    assert step_rows(PLAIN, body) == (None, None, 64)


def test_a_loop_that_only_skips_counts_does_not_cut_rows():
    body = "for _ in range(0, 2 * K, 2):\n    x, y = get_batch()\n    ce(x, y).backward()"
    assert step_rows(PLAIN, body) == (4, 12, 64)
