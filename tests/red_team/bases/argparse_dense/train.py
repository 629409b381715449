"""Data-parallel training of a small decoder.

torchrun --nproc-per-node 2 train.py --batch-size 4 --grad-accum-steps 2
"""

import argparse
import math
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import make_loader


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=4, help="sequences per process and micro-step")
    p.add_argument("--grad-accum-steps", type=int, default=2)
    p.add_argument("--seq-len", type=int, default=64)
    p.add_argument("--n-layer", type=int, default=3)
    p.add_argument("--n-head", type=int, default=4)
    p.add_argument("--n-embd", type=int, default=64)
    p.add_argument("--steps", type=int, default=4000)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--warmup", type=int, default=15)
    p.add_argument("--weight-decay", type=float, default=0.1)
    p.add_argument("--beta1", type=float, default=0.9)
    p.add_argument("--beta2", type=float, default=0.95)
    p.add_argument("--grad-clip", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--log-every", type=int, default=10)
    return p.parse_args()


class SelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_embd, n_embd)
        self.key = nn.Linear(n_embd, n_embd)
        self.value = nn.Linear(n_embd, n_embd)
        self.out = nn.Linear(n_embd, n_embd)

    def split_heads(self, x):
        b, t, c = x.shape
        return x.view(b, t, self.n_head, c // self.n_head).permute(0, 2, 1, 3)

    def forward(self, x):
        b, t, c = x.shape
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        v = self.split_heads(self.value(x))
        att = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
        causal = torch.tril(torch.ones(t, t)).view(1, 1, t, t)
        att = att.masked_fill(causal == 0, -1e9)
        att = torch.softmax(att, dim=-1)
        y = torch.matmul(att, v).permute(0, 2, 1, 3).contiguous().view(b, t, c)
        return self.out(y)


class MLP(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.fc = nn.Linear(n_embd, 4 * n_embd)
        self.proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        x = self.fc(x)
        x = 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))
        return self.proj(x)


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = SelfAttention(n_embd, n_head)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = MLP(n_embd)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    def __init__(self, args, vocab_size=256):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, args.n_embd)
        self.wpe = nn.Embedding(args.seq_len, args.n_embd)
        self.h = nn.ModuleList([Block(args.n_embd, args.n_head) for _ in range(args.n_layer)])
        self.ln_f = nn.LayerNorm(args.n_embd)
        self.lm_head = nn.Linear(args.n_embd, vocab_size, bias=False)
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, idx):
        positions = torch.arange(idx.size(1), device=idx.device)
        x = self.wte(idx) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def lr_at(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    t = (step - args.warmup) / max(1, args.steps - args.warmup)
    return args.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * t)))


def batches(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main():
    args = parse_args()
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    rank = int(os.environ.get("RANK", 0))
    if world_size > 1:
        dist.init_process_group("gloo")

    torch.manual_seed(args.seed)
    model = Decoder(args)
    if world_size > 1:
        model = DDP(model)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=args.lr,
        betas=(args.beta1, args.beta2),
        weight_decay=args.weight_decay,
    )
    loader, sampler = make_loader(args.batch_size, args.seq_len, world_size, rank, args.seed)
    stream = batches(loader, sampler)
    tokens_per_step = args.batch_size * args.grad_accum_steps * args.seq_len * world_size

    model.train()
    for step in range(args.steps):
        t0 = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step, args)
        optimizer.zero_grad()
        step_loss = 0.0
        for micro in range(args.grad_accum_steps):
            x, y = next(stream)
            logits = model(x)
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
            (loss / args.grad_accum_steps).backward()
            step_loss += loss.item() / args.grad_accum_steps
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        dt = time.perf_counter() - t0
        if rank == 0 and step % args.log_every == 0:
            print(
                f"step {step:5d} | loss {step_loss:.4f} | {dt * 1e3:.1f} ms | "
                f"{tokens_per_step / dt:.0f} tok/s",
                flush=True,
            )

    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
