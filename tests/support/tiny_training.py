"""A real training script, tiny: `tiny_training.py [oom|nan [RANK]]`. Runs with torchrun, too."""

import os
import sys

import torch
import torch.distributed as dist

WHAT = sys.argv[1] if len(sys.argv) > 1 else ""
RANK = int(sys.argv[2]) if len(sys.argv) > 2 else 0
rank = int(os.environ.get("RANK", "0"))
distributed = "WORLD_SIZE" in os.environ
if distributed:
    dist.init_process_group("gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Embedding(64, 32), torch.nn.Linear(32, 64))
if distributed:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
held = []
for step in range(100_000):
    x = torch.randint(0, 64, (16, 32))
    loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    if step >= 3 and rank == RANK:
        if WHAT == "oom":
            held.append(torch.ones(32 << 20))
        elif WHAT == "nan":
            loss = loss * float("nan")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
