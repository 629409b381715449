"""Small trainers in several styles, and what the rules find when one of them is edited."""

from collections.abc import Mapping

from carets import split_carets

from infrarsi.contract import Lock, Violation, make_lock
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, default_job, follow, propose_contract
from infrarsi.rules import check_change

ONE = "python train.py"
TWO = "torchrun --nproc-per-node 2 train.py"

CONSTANTS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

MICRO = 4
ACCUM = 4
SEQ = 64
LAYERS = 3
WIDTH = 32
STEPS = 1000
EVAL_EVERY = 100
EVAL_BATCHES = 8
SEED = 1337


def make_text(n_lines=900, seed=3):
    lines = [f"line {number} is {number * seed}" for number in range(n_lines)]
    return "".join(lines)


def load():
    ids = torch.tensor(list(make_text().encode()))
    cut = int(0.9 * len(ids))
    return ids[:cut], ids[cut:]


def get_batch(ids, size, length, generator):
    starts = torch.randint(0, len(ids) - length - 1, (size,), generator=generator)
    x = torch.stack([ids[i : i + length] for i in starts])
    y = torch.stack([ids[i + 1 : i + 1 + length] for i in starts])
    return x, y


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH)
        self.kv = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x):
        t = x.size(1)
        q = self.q(x)
        k, v = self.kv(x).chunk(2, dim=-1)
        scores = q @ k.transpose(-2, -1)
        mask = torch.tril(torch.ones(t, t)) == 0
        scores = scores.masked_fill(mask, float("-inf"))
        return F.softmax(scores, dim=-1) @ v


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, WIDTH)
        self.blocks = nn.ModuleList([Attention() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 256)

    def forward(self, idx):
        x = self.embed(idx)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x))


@torch.no_grad()
def evaluate(model, ids, generator):
    total = 0.0
    for _ in range(EVAL_BATCHES):
        x, y = get_batch(ids, MICRO, SEQ, generator)
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    return total


def main():
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    train_ids, val_ids = load()
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(ACCUM):
            x, y = get_batch(train_ids, MICRO, SEQ, generator)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM
            loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % EVAL_EVERY == 0:
            print(evaluate(model, val_ids, generator))


main()
"""
"""Module constants, one process."""

DISTRIBUTED = """\
import argparse
import contextlib
import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--accum", type=int, default=2)
parser.add_argument("--seq-len", type=int, default=64)
parser.add_argument("--dim", type=int, default=48)
parser.add_argument("--steps", type=int, default=500)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--resume", default="")


class Rows(Dataset):
    def __init__(self, length):
        self.ids = torch.arange(100000) % 250
        self.length = length

    def __len__(self):
        return len(self.ids) // self.length - 1

    def __getitem__(self, index):
        row = self.ids[index * self.length : (index + 1) * self.length + 1]
        return row[:-1], row[1:]


class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(256, dim)
        self.head = nn.Linear(dim, 256)

    def forward(self, idx):
        return self.head(self.embed(idx))


def endless(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main():
    args = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    model = Net(args.dim)
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows = Rows(args.seq_len)
    sampler = DistributedSampler(rows, num_replicas=world, rank=rank, seed=args.seed)
    loader = DataLoader(rows, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    stream = endless(loader, sampler)
    for step in range(args.steps):
        for micro in range(args.accum):
            x, y = next(stream)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / args.accum
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
"""
"""Script arguments, a data loader, two processes."""

TRAINER = """\
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler


@dataclass
class Config:
    vocab_size: int = 256
    hidden_size: int = 64
    num_experts: int = 4
    top_k: int = 2
    window: int = 32
    tokenizer: str = "bytes"


@dataclass
class Arguments:
    batch_size: int = 8
    max_steps: int = 400
    eval_steps: int = 50
    seed: int = 5


def collate(rows):
    return torch.stack(rows)


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.router = nn.Linear(config.hidden_size, config.num_experts)
        self.experts = nn.ModuleList(
            [nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.num_experts)]
        )
        self.dropout = nn.Dropout(0.1)
        self.k = config.top_k

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(self.k, dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).any(-1)
            if rows.any():
                out[rows] = expert(x[rows])
        return self.dropout(out)


class Trainer:
    def __init__(self, model, args, rows):
        self.model, self.args, self.rows = model, args, rows
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.step = 0

    def loader(self):
        sampler = RandomSampler(self.rows)
        return DataLoader(
            self.rows, batch_size=self.args.batch_size, sampler=sampler, collate_fn=collate
        )

    def training_step(self, batch):
        loss = F.mse_loss(self.model(batch), batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def evaluate(self):
        return self.model(self.rows[:8]).mean()

    def train(self):
        for batch in self.loader():
            self.training_step(batch)
            self.step += 1
            if self.step % self.args.eval_steps == 0:
                self.evaluate()
            if self.step >= self.args.max_steps:
                break


def main():
    args = Arguments()
    torch.manual_seed(args.seed)
    Trainer(Experts(Config()), args, torch.randn(1000, 64)).train()


main()
"""
"""A class that trains, dataclasses, a mixture of experts."""


def lock_of(text: str, launch: str = ONE, files: Mapping[str, str] | None = None) -> Lock:
    """The lock of a trainer as it stands."""
    parsed = parse_launch(launch)
    program = follow(MappingSources({"train.py": text, **(files or {})}), parsed)
    job = default_job("job", parsed, program.reading, "python")
    return make_lock(propose_contract(job, parsed, program.reading), {}, "c0ffee")


def found_in(
    before: str,
    after: str,
    launch: str = ONE,
    after_launch: str | None = None,
    files: Mapping[str, str] | None = None,
    after_files: Mapping[str, str] | None = None,
) -> tuple[Violation, ...]:
    """What all rules find in `after`, held against a contract made from `before`."""
    was = follow(MappingSources({"train.py": before, **(files or {})}), parse_launch(launch))
    present = {"train.py": after, **(files or {}), **(after_files or {})}
    now = follow(MappingSources(present), parse_launch(after_launch or launch))
    return check_change(lock_of(before, launch, files), now, was)


def edited(text: str, *edits: tuple[str, str]) -> tuple[str, set[tuple[str, int, int, int]]]:
    """The text with each old piece, which stands there once, replaced; and the carets drawn."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return split_carets(text)
