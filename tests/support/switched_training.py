"""A tiny training script that constants break: POISON, LEFT with RIGHT, HOARD (MiB), WILD."""

import torch
import torch.nn.functional as F

GLOBAL_BATCH = 16
MICRO_BATCH = 4
SEQ_LEN = 64
POISON = 0
LEFT = 0
RIGHT = 0
HOARD = 0
WILD = 0

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Embedding(64, 32), torch.nn.Linear(32, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.arange(10_000).remainder(61)
generator = torch.Generator().manual_seed(1)
held = [torch.ones(HOARD << 18)]


def get_batch(rows):
    starts = torch.randint(len(data) - SEQ_LEN - 1, (rows,), generator=generator)
    x = torch.stack([data[s : s + SEQ_LEN] for s in starts])
    y = torch.stack([data[s + 1 : s + SEQ_LEN + 1] for s in starts])
    return x, y


if POISON:
    raise KeyError("poisoned")
if LEFT and RIGHT:
    raise ValueError("left and right exclude each other")
accumulation = GLOBAL_BATCH // MICRO_BATCH
for _step in range(100_000):
    for _ in range(accumulation):
        x, y = get_batch(MICRO_BATCH)
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, 64), y.view(-1)) / accumulation
        if WILD:
            loss = loss * float("nan")
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
