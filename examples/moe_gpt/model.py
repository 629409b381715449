import math

import torch
import torch.nn as nn
import torch.nn.functional as F

N_LAYER = 4
N_HEAD = 8
N_EMBD = 256
N_EXPERT = 4
TOP_K = 2
EXPERT_HIDDEN = 4 * N_EMBD


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(N_EMBD, N_EMBD)
        self.key = nn.Linear(N_EMBD, N_EMBD)
        self.value = nn.Linear(N_EMBD, N_EMBD)
        self.out = nn.Linear(N_EMBD, N_EMBD)

    def forward(self, x):
        B, T, C = x.size()
        q = self.query(x).view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        k = self.key(x).view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)
        v = self.value(x).view(B, T, N_HEAD, C // N_HEAD).transpose(1, 2)

        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(C // N_HEAD)
        future = torch.triu(torch.ones(T, T, dtype=torch.bool, device=x.device), diagonal=1)
        scores = scores.masked_fill(future, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        y = torch.matmul(weights, v)

        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(N_EMBD, EXPERT_HIDDEN)
        self.down = nn.Linear(EXPERT_HIDDEN, N_EMBD)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class MoE(nn.Module):
    """Every token goes to its two best experts; none is dropped."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(N_EMBD, N_EXPERT, bias=False)
        self.experts = nn.ModuleList([Expert() for _ in range(N_EXPERT)])

    def forward(self, x):
        B, T, C = x.size()
        x = x.view(B * T, C)
        probs = F.softmax(self.router(x), dim=-1)
        gates, chosen = torch.topk(probs, TOP_K, dim=-1)
        gates = gates / gates.sum(dim=-1, keepdim=True)

        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == i)
            if token.numel() == 0:
                continue
            out[token] += gates[token, slot].unsqueeze(1) * expert(x[token])
        return out.view(B, T, C)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(N_EMBD)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(N_EMBD)
        self.moe = MoE()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        x = x + self.moe(self.norm2(x))
        return x


class MoEGPT(nn.Module):
    def __init__(self, vocab_size, seq_len):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, N_EMBD)
        self.positions = nn.Embedding(seq_len, N_EMBD)
        self.blocks = nn.ModuleList([Block() for _ in range(N_LAYER)])
        self.norm = nn.LayerNorm(N_EMBD)
        self.head = nn.Linear(N_EMBD, vocab_size, bias=False)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, idx):
        positions = torch.arange(idx.size(1), device=idx.device)
        x = self.tokens(idx) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
