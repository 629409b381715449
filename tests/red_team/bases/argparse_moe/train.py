"""Single-process training of a switch-style mixture of experts."""

import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import ShardReader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch-size", type=int, default=2)
parser.add_argument("--accum", type=int, default=6)
parser.add_argument("--seq-len", type=int, default=64)
parser.add_argument("--vocab-size", type=int, default=128)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--dim", type=int, default=48)
parser.add_argument("--ffn-dim", type=int, default=128)
parser.add_argument("--experts", type=int, default=6)
parser.add_argument("--dropout", type=float, default=0.0)
parser.add_argument("--max-steps", type=int, default=3000)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--warmup-steps", type=int, default=12)
parser.add_argument("--weight-decay", type=float, default=0.1)
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--z-loss", type=float, default=1e-3)
parser.add_argument("--eval-interval", type=int, default=150)
parser.add_argument("--eval-iters", type=int, default=10)
parser.add_argument("--seed", type=int, default=2024)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotary_tables(seq_len, head_dim):
    freqs = 1.0 / (10000 ** (torch.arange(0, head_dim, 2).float() / head_dim))
    angles = torch.outer(torch.arange(seq_len).float(), freqs)
    return torch.cos(angles), torch.sin(angles)


def rotate(x):
    cos, sin = rotary_tables(x.shape[-2], x.shape[-1])
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads = args.heads
        self.qkv = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.out = nn.Linear(args.dim, args.dim, bias=False)
        self.dropout = nn.Dropout(args.dropout)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        q, k = rotate(q), rotate(k)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(c // self.heads)
        allowed = torch.arange(t)[None, :] <= torch.arange(t)[:, None]
        scores = torch.where(allowed, scores, torch.tensor(float("-inf")))
        probs = self.dropout(scores.softmax(-1))
        y = torch.einsum("bhqk,bhkd->bhqd", probs, v)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class SwitchFFN(nn.Module):
    """Each token goes to its best expert, scaled by the router's probability."""

    def __init__(self, args):
        super().__init__()
        self.router = nn.Linear(args.dim, args.experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(args.dim, args.ffn_dim),
                nn.ReLU(),
                nn.Linear(args.ffn_dim, args.dim),
            )
            for _ in range(args.experts)
        )

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        logits = self.router(tokens)
        gate, index = logits.softmax(dim=-1).max(dim=-1)
        out = torch.zeros_like(tokens)
        for e, expert in enumerate(self.experts):
            picked = index == e
            if picked.any():
                out[picked] = expert(tokens[picked])
        out = out * gate[:, None]
        z_loss = torch.logsumexp(logits, dim=-1).square().mean()
        return out.view_as(x), z_loss


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.attn_norm = RMSNorm(args.dim)
        self.attn = Attention(args)
        self.ffn_norm = RMSNorm(args.dim)
        self.ffn = SwitchFFN(args)
        self.dropout = nn.Dropout(args.dropout)

    def forward(self, x):
        x = x + self.dropout(self.attn(self.attn_norm(x)))
        y, z_loss = self.ffn(self.ffn_norm(x))
        return x + self.dropout(y), z_loss


class SwitchLM(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embedding = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(Layer(args) for _ in range(args.layers))
        self.norm = RMSNorm(args.dim)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.04)

    def forward(self, x):
        h = self.embedding(x)
        z_losses = []
        for layer in self.layers:
            h, z_loss = layer(h)
            z_losses.append(z_loss)
        return self.output(self.norm(h)), torch.stack(z_losses).sum()


@torch.no_grad()
def evaluate(model, args):
    model.eval()
    reader = ShardReader("val", args.batch_size, args.seq_len)
    total = 0.0
    for _ in range(args.eval_iters):
        x, y = reader.next()
        logits, _ = model(x)
        total += F.cross_entropy(logits.flatten(0, 1), y.flatten()).item()
    model.train()
    return total / args.eval_iters


def main(args):
    torch.manual_seed(args.seed)
    model = SwitchLM(args)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": decay, "weight_decay": args.weight_decay},
            {"params": no_decay, "weight_decay": 0.0},
        ],
        lr=args.lr,
        betas=(0.9, 0.98),
        eps=1e-8,
    )

    def factor(step):
        if step < args.warmup_steps:
            return step / args.warmup_steps
        done = (step - args.warmup_steps) / (args.max_steps - args.warmup_steps)
        return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    reader = ShardReader("train", args.batch_size, args.seq_len)

    for step in range(1, args.max_steps + 1):
        start = time.monotonic()
        loss_value = 0.0
        for _ in range(args.accum):
            x, y = reader.next()
            logits, z_loss = model(x)
            ce = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            loss = ce + args.z_loss * z_loss
            (loss / args.accum).backward()
            loss_value += ce.item()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        seconds = time.monotonic() - start
        if step % 10 == 0 or step == 1:
            tokens = args.batch_size * args.accum * args.seq_len
            print(
                f"{step:>5} loss={loss_value / args.accum:.4f} norm={grad_norm:.3f} "
                f"step={seconds * 1e3:.2f}ms tokens/s={tokens / seconds:.0f}",
                flush=True,
            )
        if step % args.eval_interval == 0:
            print(f"{step:>5} val={evaluate(model, args):.4f}", flush=True)


if __name__ == "__main__":
    main(parser.parse_args())
