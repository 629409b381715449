"""Small trainers that time themselves: each step, an average after a few, and whole log windows."""

_MODEL = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

MICRO = 4
ACCUM = 4
SEQ = 64
STEPS = 1000
LOG = 10


def get_batch(ids, generator):
    starts = torch.randint(0, len(ids) - SEQ - 1, (MICRO,), generator=generator)
    x = torch.stack([ids[i : i + SEQ] for i in starts])
    y = torch.stack([ids[i + 1 : i + 1 + SEQ] for i in starts])
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 32)
        self.mix = nn.Linear(32, 32)
        self.head = nn.Linear(32, 256)

    def forward(self, idx):
        x = self.embed(idx)
        x = self.mix(x)
        return self.head(x)


@torch.no_grad()
def evaluate(model, ids, generator):
    x, y = get_batch(ids, generator)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()

"""

STEPPED = f"""\
import time

{_MODEL}
def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    ids = torch.arange(100000) % 256
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        started = time.perf_counter()
        optimizer.zero_grad()
        for micro in range(ACCUM):
            x, y = get_batch(ids, generator)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        elapsed = time.perf_counter() - started
        if step % LOG == 0:
            rate = MICRO * ACCUM * SEQ / elapsed
            print(f"{{step}} {{elapsed * 1e3:.1f}} ms {{rate:.0f}} tok/s")
        if step % 100 == 0:
            print(evaluate(model, ids, generator))


main()
"""
"""Each step is timed on its own; module constants, one process."""

AVERAGED = f"""\
import time
from dataclasses import dataclass

{_MODEL}
@dataclass
class Arguments:
    max_steps: int = 400
    skipped: int = 5
    lr: float = 1e-3


class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model.cuda(), args
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1.0)
        self.generator = torch.Generator().manual_seed(1)
        self.ids = torch.arange(100000) % 256
        self.times = []

    def training_step(self):
        x, y = get_batch(self.ids, self.generator)
        loss = F.cross_entropy(self.model(x.cuda()).flatten(0, 1), y.cuda().flatten())
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        return loss

    def train(self):
        for step in range(self.args.max_steps):
            begin = time.time()
            loss = self.training_step()
            torch.cuda.synchronize()
            seconds = time.time() - begin
            if step >= self.args.skipped:
                self.times.append(seconds)
        mean = sum(self.times) / len(self.times)
        print(f"{{mean:.4f}} s a step, loss {{loss:.4f}}")


def main():
    torch.manual_seed(1)
    Trainer(Net(), Arguments()).train()


main()
"""
"""A class that averages its steps' times, the first ones left out; on a GPU."""

WINDOWS = f"""\
import argparse
import os
import time

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

{_MODEL}
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--log-every", type=int, default=10)


def main():
    args = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(rank)
    ids = torch.arange(100000) % 256
    model = Net()
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tic = time.perf_counter()
    for step in range(1, args.steps + 1):
        for micro in range(ACCUM):
            x, y = get_batch(ids, generator)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % args.log_every == 0:
            toc = time.perf_counter()
            tokens = MICRO * ACCUM * SEQ * world * args.log_every
            rate = tokens / (toc - tic)
            print(f"{{step}} {{(toc - tic) / args.log_every:.4f}} s {{rate:.0f}} tok/s")
            tic = time.perf_counter()


main()
"""
"""Whole windows between two log lines are timed; script arguments, two processes."""
