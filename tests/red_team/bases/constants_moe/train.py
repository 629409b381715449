"""Train a small mixture-of-experts decoder. Edit the constants to change a run."""

import math
import time

import torch
from torch import nn
from torch.nn import functional as F

from data import TokenLoader

# model
vocab_size = 256
block_size = 48
n_layer = 2
n_head = 2
d_model = 48
n_experts = 8
top_k = 2
d_expert = 96
# optimisation
micro_batch_size = 4
total_batch_size = 768  # tokens per update
max_iters = 4000
max_lr = 4e-3
warmup_iters = 10
weight_decay = 0.05
max_grad_norm = 1.0
aux_coef = 0.01
z_coef = 0.001
# run
seed = 7
log_interval = 10

grad_accum_steps = total_batch_size // (micro_batch_size * block_size)


class CausalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq = nn.Linear(d_model, d_model, bias=False)
        self.wk = nn.Linear(d_model, d_model, bias=False)
        self.wv = nn.Linear(d_model, d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        B, T, C = x.size()
        shape = (B, T, n_head, C // n_head)
        q = self.wq(x).view(shape).transpose(1, 2)
        k = self.wk(x).view(shape).transpose(1, 2)
        v = self.wv(x).view(shape).transpose(1, 2)
        att = q @ k.transpose(-2, -1) * (C // n_head) ** -0.5
        att = att + torch.full((T, T), float("-inf")).triu(1)
        att = att.softmax(dim=-1)
        out = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.wo(out)


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(d_model, d_expert, bias=False)
        self.up = nn.Linear(d_model, d_expert, bias=False)
        self.down = nn.Linear(d_expert, d_model, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList([Expert() for _ in range(n_experts)])

    def forward(self, x):
        B, T, C = x.size()
        flat = x.reshape(-1, C)
        router_logits = self.router(flat)
        probs = router_logits.softmax(dim=-1)
        weights, chosen = probs.topk(top_k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)

        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            for slot in range(top_k):
                rows = (chosen[:, slot] == i).nonzero().squeeze(-1)
                if rows.numel() == 0:
                    continue
                y = expert(flat[rows]) * weights[rows, slot].unsqueeze(-1)
                out = out.index_add(0, rows, y)

        load = F.one_hot(chosen, n_experts).float().mean(dim=(0, 1))
        balance = n_experts * (load * probs.mean(dim=0)).sum()
        z = router_logits.logsumexp(dim=-1).pow(2).mean()
        return out.view(B, T, C), aux_coef * balance + z_coef * z


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.RMSNorm(d_model)
        self.attn = CausalAttention()
        self.norm2 = nn.RMSNorm(d_model)
        self.moe = MoE()

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        y, aux = self.moe(self.norm2(x))
        return x + y, aux


class MoEDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.pos = nn.Parameter(torch.randn(block_size, d_model) * 0.02)
        self.layers = nn.ModuleList([Block() for _ in range(n_layer)])
        self.norm = nn.RMSNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.03)

    def forward(self, idx, targets):
        x = self.embed(idx) + self.pos
        aux_total = 0.0
        for layer in self.layers:
            x, aux = layer(x)
            aux_total = aux_total + aux
        logits = self.lm_head(self.norm(x))
        ce = F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))
        return ce, aux_total


def get_lr(it):
    if it < warmup_iters:
        return max_lr * (it + 1) / warmup_iters
    return max_lr * (1 - 0.9 * (it - warmup_iters) / (max_iters - warmup_iters))


torch.manual_seed(seed)
loader = TokenLoader(micro_batch_size, block_size, seed)
model = MoEDecoder()
optimizer = torch.optim.AdamW(
    model.parameters(), lr=max_lr, betas=(0.9, 0.95), weight_decay=weight_decay
)

for it in range(max_iters):
    t0 = time.time()
    lr = get_lr(it)
    for group in optimizer.param_groups:
        group["lr"] = lr

    optimizer.zero_grad()
    loss_sum = 0.0
    for micro_step in range(grad_accum_steps):
        xb, yb = loader.next_batch()
        xb, yb = torch.from_numpy(xb), torch.from_numpy(yb)
        ce, aux = model(xb, yb)
        loss = (ce + aux) / grad_accum_steps
        loss.backward()
        loss_sum += ce.item() / grad_accum_steps
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    optimizer.step()

    dt = time.time() - t0
    if it % log_interval == 0:
        tok_s = total_batch_size / dt
        print(
            f"iter {it}: loss {loss_sum:.4f}, norm {norm:.3f}, lr {lr:.5f}, {dt * 1000:.1f}ms, {tok_s:.0f} tok/s",
            flush=True,
        )
