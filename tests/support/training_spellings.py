"""Small training jobs as people write them: texts by path, `train.py` is launched.

Each prints one line a step with its loss and, where it accumulates, the sum it logged.
"""

_DATA = """\
torch.manual_seed(0)
GENERATOR = torch.Generator().manual_seed(1)


def get_batch(n=2):
    x = torch.randint(0, 17, (n, 8), generator=GENERATOR)
    return x, (x * 3 + 1) % 17
"""

PLAIN = {
    "train.py": f'''\
"""A plain job."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

MICRO_BATCH = 2  # rows
ACCUM = 3
{_DATA}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(17, 16)
        self.up = nn.Linear(16, 32)
        self.head = nn.Linear(32, 17)

    def forward(self, idx):
        return self.head(F.gelu(self.up(self.emb(idx))))


def main():
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(2):
        began = time.perf_counter()
        optimizer.zero_grad()
        total = 0.0
        for _ in range(ACCUM):
            x, y = get_batch(MICRO_BATCH)
            # forward
            logits = model(x)  # (B, T, V)
            loss = F.cross_entropy(logits.view(-1, 17), y.view(-1)) / ACCUM
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds = time.perf_counter() - began
        print(step, total)


main()
'''
}

LOSS_IN_MODEL = {
    "train.py": f"""\
import torch
from nets.model import build

device = "cpu"
{_DATA}
model = build().to(device)
opt = torch.optim.SGD(params=model.parameters(), lr=0.1, momentum=0.9)
losses_seen = []
for it in range(2):
    losses = []
    for micro in range(2):
        X, Y = get_batch()
        logits, loss = model(X.to(device), Y.to(device))
        loss = loss / 2
        loss.backward()
        losses.append(loss.item() * 2)
    opt.step()
    opt.zero_grad(set_to_none=True)
    print(it, sum(losses) / len(losses))
""",
    "nets/__init__.py": "",
    "nets/model.py": """\
import torch.nn as nn
from torch.nn import functional as F


class Base(nn.Module):
    pass


class Model(Base):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(17, 16)
        self.head = nn.Linear(16, 17)

    def forward(self, idx, targets=None):
        logits = self.head(self.emb(idx))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


def build():
    return Model()
""",
}

FLAT = {
    "train.py": f"""\
import torch as th
import torch
from torch import nn, optim

{_DATA}
net = nn.Sequential(nn.Embedding(17, 16), nn.Linear(16, 17))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(
    net.parameters(),
    lr=1e-2,
    betas=(0.9, 0.95),
)
accum = 2
running = 0.0
for i in range(4):
    x, y = get_batch()
    out = net(x)
    loss = criterion(out.flatten(0, 1), y.flatten())
    (loss / accum).backward()
    running = running + float(loss.detach()) / accum
    if (i + 1) % accum == 0:
        optimizer.step()
        optimizer.zero_grad()
        print(i, running)
        running = 0.0
"""
}

TRAINER = {
    "train.py": f"""\
import torch
from torch import nn
from torch.optim import AdamW

{_DATA}

class Trainer:
    def __init__(self, model, device):
        self.model = model
        self.device = torch.device(device)
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = AdamW(self.model.parameters(), 1e-2)

    def compute_loss(self, batch):
        x, y = batch
        out = self.model(x.to(self.device))
        return self.loss_fn(out.transpose(1, 2), y.to(self.device))

    def train_step(self, batches):
        logged = 0
        for batch in batches:
            loss = self.compute_loss(batch) / len(batches)
            loss.backward()
            logged += loss.detach().cpu().item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return logged


trainer = Trainer(nn.Sequential(nn.Embedding(17, 16), nn.Linear(16, 17)), "cpu")
for step in range(2):
    print(step, trainer.train_step([get_batch() for _ in range(2)]))
"""
}

ONE_LINE = {
    "train.py": f"""\
import torch, torch.nn as nn, torch.nn.functional as F

{_DATA}
net = nn.Sequential(nn.Embedding(17, 16), nn.Linear(16, 17))
sgd = torch.optim.SGD(net.parameters(), 0.1)
pair = lambda: (get_batch(), get_batch())
for step in range(2):
    for x, y in pair(): F.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
    sgd.step(); sgd.zero_grad()
    print(step, net[1].weight.sum().item())
"""
}

EXPERTS = {
    "train.py": f"""\
import torch
import torch.nn as nn
import torch.nn.functional as F

{_DATA}

class Experts(nn.Module):
    def __init__(self, width=16, n=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(width, n, bias=False)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(n))

    def forward(self, x):
        flat = x.view(-1, x.size(-1))
        scores = self.gate(flat)
        weights, chosen = F.softmax(scores, dim=-1).topk(self.k, dim=-1)
        out = torch.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            rows, slot = (chosen == e).nonzero(as_tuple=True)
            out.index_add_(0, rows, expert(flat[rows]) * weights[rows, slot, None])
        mixed = torch.zeros_like(flat)
        rows = torch.arange(flat.size(0))
        mixed[rows] = self.experts[0](flat)
        return (out + mixed).view_as(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(17, 16)
        self.moe = Experts()
        self.head = nn.Linear(16, 17)

    def forward(self, idx):
        return self.head(self.moe(self.emb(idx)))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(2):
    total = 0.0
    for _ in range(2):
        x, y = get_batch()
        loss = F.cross_entropy(model(x).view(-1, 17), y.view(-1)) / 2
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    print(step, total)
"""
}

JOBS: dict[str, dict[str, str]] = {
    "plain": PLAIN,
    "loss_in_model": LOSS_IN_MODEL,
    "flat": FLAT,
    "trainer": TRAINER,
    "one_line": ONE_LINE,
    "experts": EXPERTS,
}
