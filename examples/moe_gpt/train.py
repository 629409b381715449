"""Trains a small byte-level GPT whose feed-forward layers are mixtures of experts.

    python train.py --batch-size 2
    torchrun --nproc-per-node 2 train.py
"""

import argparse
import math
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB_SIZE = 256
N_LAYER = 3
N_HEAD = 8
N_EMBD = 256
N_EXPERT = 8
TOP_K = 2
SEED = 1337


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(N_EMBD, N_EMBD)
        self.key = nn.Linear(N_EMBD, N_EMBD)
        self.value = nn.Linear(N_EMBD, N_EMBD)
        self.proj = nn.Linear(N_EMBD, N_EMBD)
        self.scale = (N_EMBD // N_HEAD) ** -0.5

    def forward(self, x):
        B, T, C = x.size()
        q = self.query(x).view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        k = self.key(x).view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        v = self.value(x).view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.scale
        future = torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device), diagonal=1)
        scores = scores.masked_fill(future, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out = torch.matmul(weights, v).transpose(1, 2).reshape(B, T, C)
        return self.proj(out)


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(N_EMBD, 4 * N_EMBD)
        self.down = nn.Linear(4 * N_EMBD, N_EMBD)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class MixtureOfExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(N_EMBD, N_EXPERT, bias=False)
        self.experts = nn.ModuleList([Expert() for _ in range(N_EXPERT)])

    def forward(self, x):
        tokens = x.reshape(-1, x.size(-1))
        probs = F.softmax(self.router(tokens), dim=-1)
        weights, chosen = probs.topk(TOP_K, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            rows, slots = torch.where(chosen == i)
            if len(rows) == 0:
                continue
            out[rows] += weights[rows, slots].unsqueeze(-1) * expert(tokens[rows])
        return out.view_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(N_EMBD)
        self.attn = CausalSelfAttention()
        self.ln2 = nn.LayerNorm(N_EMBD)
        self.moe = MixtureOfExperts()

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.moe(self.ln2(x))


class MoEGPT(nn.Module):
    def __init__(self, seq_len):
        super().__init__()
        self.tok_emb = nn.Embedding(VOCAB_SIZE, N_EMBD)
        self.pos_emb = nn.Embedding(seq_len, N_EMBD)
        self.blocks = nn.ModuleList([Block() for _ in range(N_LAYER)])
        self.ln_f = nn.LayerNorm(N_EMBD)
        self.head = nn.Linear(N_EMBD, VOCAB_SIZE, bias=False)
        nn.init.normal_(self.tok_emb.weight, std=0.02)
        nn.init.normal_(self.pos_emb.weight, std=0.02)

    def forward(self, idx):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.tok_emb(idx) + self.pos_emb(pos)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


def get_batch(data, batch_size, seq_len, generator):
    starts = torch.randint(len(data) - seq_len, (batch_size,), generator=generator)
    inputs = torch.stack([data[s : s + seq_len] for s in starts])
    targets = torch.stack([data[s + 1 : s + seq_len + 1] for s in starts])
    return inputs, targets


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=str(Path(__file__).parent / "data" / "text.txt"))
    parser.add_argument("--batch-size", type=int, default=2, help="sequences per process and micro-step")
    parser.add_argument("--global-batch", type=int, default=8, help="sequences per optimizer step")
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--grad-clip", type=float, default=1.0)
    return parser.parse_args()


def main():
    args = parse_args()
    rank = int(os.environ.get("RANK", 0))
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        dist.init_process_group("gloo")
    accumulation = args.global_batch // (args.batch_size * world_size)

    torch.manual_seed(SEED)
    model = MoEGPT(args.seq_len)
    if rank == 0:
        n_params = sum(p.numel() for p in model.parameters())
        print(f"{n_params / 1e6:.2f} M parameters, accumulating {accumulation}")
    if world_size > 1:
        model = DDP(model, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)

    data = torch.tensor(list(Path(args.data).read_bytes()), dtype=torch.long)
    generator = torch.Generator().manual_seed(SEED + rank)

    for step in range(args.steps):
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(1.0, (step + 1) / args.warmup)
        total_loss = 0.0
        for _ in range(accumulation):
            inputs, targets = get_batch(data, args.batch_size, args.seq_len, generator)
            logits = model(inputs)
            loss = F.cross_entropy(logits.view(-1, VOCAB_SIZE), targets.view(-1)) / accumulation
            loss.backward()
            total_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            ms = 1000 * (time.perf_counter() - start)
            print(f"step {step} loss {total_loss:.4f} {ms:.0f} ms", flush=True)

    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
