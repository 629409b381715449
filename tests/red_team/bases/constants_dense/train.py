"""Train a small byte-level decoder on letters. All settings are the constants below."""

import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from data import get_batch, load

BATCH_SIZE = 4
GRAD_ACCUM = 4
SEQ_LEN = 64
VOCAB_SIZE = 256
N_LAYER = 3
N_HEAD = 4
N_EMBD = 64
MAX_STEPS = 3000
LEARNING_RATE = 3e-3
MIN_LR = 3e-4
WARMUP_STEPS = 20
WEIGHT_DECAY = 0.1
BETAS = (0.9, 0.95)
GRAD_CLIP = 1.0
EVAL_EVERY = 100
EVAL_BATCHES = 8
LOG_EVERY = 10
SEED = 1337


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(N_EMBD, 3 * N_EMBD, bias=False)
        self.proj = nn.Linear(N_EMBD, N_EMBD, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, N_HEAD, c // N_HEAD).transpose(1, 2)
        k = k.view(b, t, N_HEAD, c // N_HEAD).transpose(1, 2)
        v = v.view(b, t, N_HEAD, c // N_HEAD).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(c // N_HEAD)
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        y = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(N_EMBD)
        self.attn = Attention()
        self.ln2 = nn.LayerNorm(N_EMBD)
        self.mlp = nn.Sequential(
            nn.Linear(N_EMBD, 4 * N_EMBD),
            nn.GELU(),
            nn.Linear(4 * N_EMBD, N_EMBD),
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return x


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB_SIZE, N_EMBD)
        self.pos = nn.Embedding(SEQ_LEN, N_EMBD)
        self.blocks = nn.ModuleList([Block() for _ in range(N_LAYER)])
        self.ln_f = nn.LayerNorm(N_EMBD)
        self.head = nn.Linear(N_EMBD, VOCAB_SIZE, bias=False)
        self.apply(self._init_weights)
        self.head.weight = self.tok.weight

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, x):
        t = x.shape[1]
        h = self.tok(x) + self.pos(torch.arange(t))
        for block in self.blocks:
            h = block(h)
        return self.head(self.ln_f(h))


def compute_loss(model, x, y):
    logits = model(x)
    return F.cross_entropy(logits.view(-1, VOCAB_SIZE), y.view(-1))


def learning_rate(step):
    if step < WARMUP_STEPS:
        return LEARNING_RATE * (step + 1) / WARMUP_STEPS
    progress = (step - WARMUP_STEPS) / (MAX_STEPS - WARMUP_STEPS)
    return MIN_LR + 0.5 * (LEARNING_RATE - MIN_LR) * (1 + math.cos(math.pi * progress))


@torch.no_grad()
def evaluate(model, ids):
    model.eval()
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(EVAL_BATCHES):
        x, y = get_batch(ids, BATCH_SIZE, SEQ_LEN, generator)
        losses.append(compute_loss(model, x, y).item())
    model.train()
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    train_ids, val_ids = load()
    model = GPT()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=WEIGHT_DECAY
    )
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

    model.train()
    for step in range(MAX_STEPS):
        started = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.zero_grad()
        total = 0.0
        for _ in range(GRAD_ACCUM):
            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)
            loss = compute_loss(model, x, y) / GRAD_ACCUM
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)
        optimizer.step()
        elapsed = time.perf_counter() - started

        if step % LOG_EVERY == 0:
            rate = BATCH_SIZE * GRAD_ACCUM * SEQ_LEN / elapsed
            print(
                f"step {step} loss {total:.4f} {elapsed * 1e3:.1f} ms {rate:,.0f} tok/s", flush=True
            )
        if step > 0 and step % EVAL_EVERY == 0:
            print(f"step {step} val {evaluate(model, val_ids):.4f}", flush=True)


if __name__ == "__main__":
    main()
