"""Trains a small byte-level mixture-of-experts GPT.

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
import torch.nn.functional as F
from model import MoEGPT
from torch.nn.parallel import DistributedDataParallel

VOCAB_SIZE = 256
WARMUP_STEPS = 5


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=str(Path(__file__).parent / "data" / "text.txt"))
    parser.add_argument("--seq-len", type=int, default=256)
    parser.add_argument("--global-batch", type=int, default=8, help="sequences per update, all ranks")
    parser.add_argument("--micro-batch", type=int, default=2, help="sequences per forward, one rank")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--grad-clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1337)
    return parser.parse_args()


class Lines:
    def __init__(self, path, seq_len, seed):
        lines = Path(path).read_bytes().splitlines(keepends=True)
        self.lines = torch.tensor([list(line) for line in lines], dtype=torch.long)
        self.seq_len = seq_len
        self.generator = torch.Generator().manual_seed(seed)

    def next_batch(self, batch_size):
        picks = torch.randint(len(self.lines), (batch_size,), generator=self.generator)
        rows = self.lines[picks, : self.seq_len + 1]
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def main():
    args = parse_args()
    rank = int(os.environ.get("RANK", "0"))
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    distributed = world_size > 1
    if distributed:
        dist.init_process_group(backend="gloo")
    accum = args.global_batch // (args.micro_batch * world_size)

    torch.manual_seed(args.seed)
    model = MoEGPT(VOCAB_SIZE, args.seq_len)
    if rank == 0:
        print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters, accumulating {accum}")
    if distributed:
        # An expert no token of this rank went to gets no gradient.
        model = DistributedDataParallel(model, find_unused_parameters=True)

    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)

    def lr_scale(step):
        if step < WARMUP_STEPS:
            return (step + 1) / WARMUP_STEPS
        progress = (step - WARMUP_STEPS) / max(1, args.steps - WARMUP_STEPS)
        return 0.1 + 0.45 * (1.0 + math.cos(math.pi * progress))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_scale)
    data = Lines(args.data, args.seq_len, args.seed + rank)

    model.train()
    for step in range(args.steps):
        t0 = time.time()
        losses = []
        for _ in range(accum):
            x, y = data.next_batch(args.micro_batch)
            logits = model(x)
            loss = F.cross_entropy(logits.view(-1, VOCAB_SIZE), y.view(-1)) / accum
            loss.backward()
            losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        dt = time.time() - t0
        if rank == 0:
            tokens = args.global_batch * args.seq_len
            print(f"step {step} | loss {sum(losses):.4f} | {dt * 1000:.0f} ms | {tokens / dt:.0f} tok/s", flush=True)

    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
