"""A mixture-of-experts decoder in the plainest form."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class CausalAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.query = nn.Linear(cfg.width, cfg.width, bias=False)
        self.key = nn.Linear(cfg.width, cfg.width, bias=False)
        self.value = nn.Linear(cfg.width, cfg.width, bias=False)
        self.out = nn.Linear(cfg.width, cfg.width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        size = width // self.heads
        outputs = []
        q, k, v = self.query(x), self.key(x), self.value(x)
        mask = torch.triu(torch.ones(length, length), diagonal=1).bool()
        for h in range(self.heads):
            part = slice(h * size, (h + 1) * size)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / math.sqrt(size)
            scores = scores.masked_fill(mask, float("-inf"))
            outputs.append(F.softmax(scores, dim=-1) @ v[..., part])
        return self.out(torch.cat(outputs, dim=-1))


class MixtureOfExperts(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n = cfg.experts
        self.k = cfg.experts_per_token
        self.router = nn.Linear(cfg.width, cfg.experts, bias=False)
        self.w_in = nn.ModuleList(
            [nn.Linear(cfg.width, cfg.expert_width) for _ in range(cfg.experts)]
        )
        self.w_out = nn.ModuleList(
            [nn.Linear(cfg.expert_width, cfg.width) for _ in range(cfg.experts)]
        )

    def forward(self, x):
        flat = x.view(-1, x.size(-1))
        scores = self.router(flat)
        top, index = scores.topk(self.k, dim=-1)
        gates = F.softmax(top, dim=-1)
        mixed = torch.zeros_like(flat)
        for e in range(self.n):
            token, slot = torch.where(index == e)
            if token.numel() == 0:
                continue
            hidden = F.gelu(self.w_in[e](flat[token]))
            mixed.index_add_(0, token, gates[token, slot, None] * self.w_out[e](hidden))
        z_loss = torch.logsumexp(scores, dim=-1).pow(2).mean()
        return mixed.view_as(x), z_loss


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm_attention = RMSNorm(cfg.width)
        self.attention = CausalAttention(cfg)
        self.norm_experts = RMSNorm(cfg.width)
        self.experts = MixtureOfExperts(cfg)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm_attention(x)))
        update, z_loss = self.experts(self.norm_experts(x))
        return x + self.dropout(update), z_loss


class MoEDecoder(nn.Module):
    def __init__(self, cfg, context):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab_size, cfg.width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, cfg.width))
        self.blocks = nn.ModuleList([Block(cfg) for _ in range(cfg.depth)])
        self.norm = RMSNorm(cfg.width)
        self.unembed = nn.Linear(cfg.width, cfg.vocab_size, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.1)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.size(1)]
        z_total = 0.0
        for block in self.blocks:
            x, z_loss = block(x)
            z_total = z_total + z_loss
        return self.unembed(self.norm(x)), z_total
