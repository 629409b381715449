"""Trains a small byte-level GPT.

    python train.py
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
SEQ_LEN = 512
N_LAYER = 3
N_HEAD = 12
N_EMBD = 384

GLOBAL_BATCH = 4
MICRO_BATCH = 1
GRAD_CLIP = 1.0
SEED = 1337


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(N_EMBD, 3 * N_EMBD)
        self.proj = nn.Linear(N_EMBD, N_EMBD)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(N_EMBD, dim=2)
        q = q.view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        k = k.view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        v = v.view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)

        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = torch.tril(torch.ones(T, T, device=x.device))
        att = att.masked_fill(mask == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v

        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(N_EMBD, 4 * N_EMBD)
        self.down = nn.Linear(4 * N_EMBD, N_EMBD)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(N_EMBD)
        self.attn = CausalSelfAttention()
        self.ln2 = nn.LayerNorm(N_EMBD)
        self.mlp = MLP()

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return x


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_emb = nn.Embedding(VOCAB_SIZE, N_EMBD)
        self.pos_emb = nn.Embedding(SEQ_LEN, N_EMBD)
        self.blocks = nn.ModuleList([Block() for _ in range(N_LAYER)])
        self.ln_f = nn.LayerNorm(N_EMBD)
        self.head = nn.Linear(N_EMBD, VOCAB_SIZE, bias=False)
        nn.init.normal_(self.pos_emb.weight, std=0.02)

    def forward(self, idx):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.tok_emb(idx) + self.pos_emb(pos)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


def load_lines(path):
    lines = Path(path).read_bytes().splitlines(keepends=True)
    return torch.tensor([list(line) for line in lines], dtype=torch.long)


def get_batch(lines, batch_size, generator):
    picks = torch.randint(len(lines), (batch_size,), generator=generator)
    x = torch.stack([lines[i, :SEQ_LEN] for i in picks])
    y = torch.stack([lines[i, 1 : SEQ_LEN + 1] for i in picks])
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=str(Path(__file__).parent / "data" / "text.txt"))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("gloo")
    accum_steps = GLOBAL_BATCH // (MICRO_BATCH * world)

    torch.manual_seed(SEED)
    model = GPT()
    n_params = sum(p.numel() for p in model.parameters())
    if world > 1:
        model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    lines = load_lines(args.data)
    generator = torch.Generator().manual_seed(SEED + rank)
    if rank == 0:
        print(f"{n_params / 1e6:.2f} M parameters, {len(lines)} lines of text, accumulating {accum_steps}")

    for step in range(args.steps):
        start = time.perf_counter()
        step_loss = 0.0
        for micro_step in range(accum_steps):
            x, y = get_batch(lines, MICRO_BATCH, generator)
            logits = model(x)
            loss = F.cross_entropy(logits.view(-1, VOCAB_SIZE), y.view(-1)) / accum_steps
            loss.backward()
            step_loss += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)
        optimizer.step()
        optimizer.zero_grad()
        seconds = time.perf_counter() - start
        if rank == 0:
            tokens_per_s = GLOBAL_BATCH * SEQ_LEN / seconds
            print(f"step {step} loss {step_loss:.4f} {1000 * seconds:.0f} ms {tokens_per_s:.0f} tokens/s", flush=True)

    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
